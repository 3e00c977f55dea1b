"""What a reader's loader is made of, looked at without running its code."""

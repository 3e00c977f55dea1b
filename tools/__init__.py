"""Tools that keep the book in order: canonical notebooks, checks, settings."""

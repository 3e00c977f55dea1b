"""Helpers of the DataLoader book: measure, explain and tune a data pipeline."""

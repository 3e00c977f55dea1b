"""Faults of a loader: the rules, and what they are given to look at."""

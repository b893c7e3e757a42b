"""Attached lakes, and what a name in SQL refers to."""

"""Attached lakes, and the resolution of names in SQL."""

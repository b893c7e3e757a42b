"""Converts conditions to predicates over columns, to skip files and row groups."""

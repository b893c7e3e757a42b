"""Conditions to predicates over columns, for file and row-group skipping."""

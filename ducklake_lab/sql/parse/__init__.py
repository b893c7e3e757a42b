"""Parses SQL text to operations: DuckLake's own statements first, then the general parser."""

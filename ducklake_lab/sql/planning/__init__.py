"""Statements to plans: what to read, and the SQL over it for each engine."""

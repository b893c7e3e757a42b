"""Expectations of tables: defined, checked before a commit on the rows that change, and checked for whole tables."""

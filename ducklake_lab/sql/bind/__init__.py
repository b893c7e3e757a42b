"""Binds names to tables and columns: scopes, stars, views, macros, and the FROM clause."""

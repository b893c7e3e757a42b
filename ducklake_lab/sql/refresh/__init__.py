"""Queries for the rows of a result that changes of its sources affect: keys, rows of keys, and rows with a sign."""

"""Blame of cells and lives of rows: which snapshot set each value, from the versions of rows in files and catalog."""

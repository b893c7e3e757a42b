"""Uploads: converts files to rows of tables."""

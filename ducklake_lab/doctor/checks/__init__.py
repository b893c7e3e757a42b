"""Families of checks."""

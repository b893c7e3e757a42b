"""Runs statements: each kind has its module."""

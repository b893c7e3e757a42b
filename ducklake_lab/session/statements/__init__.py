"""Runs statements; each kind has a module."""

"""Maintenance by policy: what a lake needs as pieces of work, and their run, one commit each."""

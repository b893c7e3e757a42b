"""Branches of a lake: copies of its catalog at a snapshot, which share its files.

A branch is an ordinary lake. `registry` lists the branches of a lake in its own catalog, `location` says where theirs are,
`copying` copies the metadata, `files` links the files, `making` makes and drops branches by them (ADR 96).
"""

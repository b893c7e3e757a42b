"""Lineage: which columns come from which, by views and by the statements that commits note."""

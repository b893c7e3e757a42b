"""Branches as the catalog of their lake lists them: names, places, the snapshots at which they began."""

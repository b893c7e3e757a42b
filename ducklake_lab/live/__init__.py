"""Live tables: ordinary tables whose rows are those of a query at a snapshot, and what happened to its sources since."""

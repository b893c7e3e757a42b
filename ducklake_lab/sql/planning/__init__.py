"""Plans statements: their sources, and their SQL for each engine."""

"""Spark's Python workers: `packages` sends them this package, `start` prepares one for a task, `tasks` runs pieces of work."""

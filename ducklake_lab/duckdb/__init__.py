"""DuckDB: connections, casting, and SQL as it spells it. Other rooms make no connection of their own."""

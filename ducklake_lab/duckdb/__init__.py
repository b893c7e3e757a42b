"""DuckDB: connections, casting, and its spelling of SQL. Other rooms make no connection of their own."""

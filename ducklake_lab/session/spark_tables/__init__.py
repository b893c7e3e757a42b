"""Lakes as catalogs of Spark: answers to the requests of the catalog in Java (ADR 85)."""

"""Sources of a query's rows, and the rows of a result."""

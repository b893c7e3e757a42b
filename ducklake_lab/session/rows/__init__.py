"""The rows behind the sources of a query, and the rows of a result."""

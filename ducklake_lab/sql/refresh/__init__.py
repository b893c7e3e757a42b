"""What a change of its sources means for the rows of a query: the affected keys, and the rows of those keys."""

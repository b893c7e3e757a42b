"""Takes the changes of one snapshot back, as changes of a transaction."""

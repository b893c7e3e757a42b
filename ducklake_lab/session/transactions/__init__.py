"""Begin, commit, roll back and run again: the transactions of a session."""

"""Files that become rows of tables."""

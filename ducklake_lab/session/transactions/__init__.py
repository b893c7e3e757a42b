"""Transactions of a session: begin, commit, rollback and rerun."""

"""The part of a session that makes branches of its lakes and switches between them."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from ducklake_lab.branches.making import branch_location, drop_branch, list_branches, make_branch
from ducklake_lab.catalog.branches.branch import Branch
from ducklake_lab.catalog.branches.root import root_lake
from ducklake_lab.catalog.opening import open_lake
from ducklake_lab.errors import TransactionError
from ducklake_lab.session.listings import Listing
from ducklake_lab.session.names.attached_lakes import Lakes
from ducklake_lab.session.names.attaching import attached_branch
from ducklake_lab.session.names.explaining import works_on_lakes

#: Line below branches whose files are shared.
_SHARED = (
    "A shared branch and its lake read the same files. Let only this package delete old or orphaned files of either; "
    "copy=True makes a branch that is safe from every client."
)


@works_on_lakes
class Branching:
    """Branches of the current lake: ordinary lakes that begin at one of its snapshots and share its files."""

    _lakes: Lakes

    def branch(self, name: str, at: int | datetime | str | None = None, copy: bool = False) -> Branch:
        """Makes a branch of the current lake, or of the branch that it is. The session stays where it is.

        Args:
            name: up to 40 letters, digits, "-", "_" and "."; upper and lower case are one.
            at: the snapshot that it begins at, by id, time or tag; by default the newest.
            copy: copy the files. Without it they get a second name on this filesystem, and no byte is copied; in an object
                store both sides name the same files. Maintenance by this package keeps what the other side needs; other
                clients must run neither `cleanup_old_files` nor `delete_orphaned_files` on either then.

        Raises:
            EntryExistsError: the lake has a branch of that name.
            SnapshotNotFoundError: the snapshot does not exist.
            UnsupportedFeatureError: a file at that snapshot also has rows of later ones.
            TransactionConflictError: snapshots expired while the branch was made.
            TransactionError: a transaction is open.
        """
        self._check_between_transactions("makes")
        return make_branch(self._lakes.get(), name, at, copy=copy)

    def branches(self) -> Listing:
        """Returns the branches of the current lake.

        Columns are the name, the snapshot that it began at, its parent, the time in UTC, how it has its files (as links, copies,
        or shared with the lake), and whether it is in use.
        """
        lake = self._lakes.get()
        rows = [
            (branch.name, branch.snapshot_id, branch.parent, branch.created, branch.files, branch.name == lake.branch)
            for branch in list_branches(lake)
        ]
        return Listing(
            f"Branches of {lake.alias}",
            ("branch", "snapshot", "parent", "created", "files", "in_use"),
            rows,
            noun="branch",
            note=_SHARED if any(row[4] == "shared" for row in rows) else "",
        )

    @property
    def current_branch(self) -> str | None:
        """The branch that the current lake is; None for the lake itself."""
        return self._lakes.get().branch

    def switch(self, name: str | None) -> None:
        """Reads and writes a branch under the current lake's alias, or with None the lake itself.

        Raises:
            EntryNotFoundError: the lake has no such branch.
            TransactionError: a transaction is open, or the lake is pinned.
        """
        self._check_between_transactions("switches")
        before = self._lakes.get()
        if before.pinned is not None:
            raise TransactionError(
                f"The lake {before.title} is pinned at {before.pinned}; session.pin(None) or %ducklake pin --off unpins it."
            )
        location = root_lake(before).lake.location if name is None else branch_location(before, name)
        options = replace(before.attach_options, data_path=None, override_data_path=False, create_if_not_exists=False)
        options = replace(options, snapshot_version=None, snapshot_time=None)
        lake = open_lake(location, before.alias, options, before.session)
        self._lakes.replace(attached_branch(lake))

    def drop_branch(self, name: str, dry_run: bool = False) -> Branch:
        """Drops a branch of the current lake with its commits and files, and returns it; files of the lake stay.

        Args:
            dry_run: drop nothing.

        Raises:
            EntryNotFoundError: the lake has no such branch.
            UnsupportedFeatureError: it is in use.
            TransactionError: a transaction is open.
        """
        self._check_between_transactions("drops")
        return drop_branch(self._lakes.get(), name, dry_run=dry_run)

    def _check_between_transactions(self, does: str) -> None:
        if self._lakes.in_transaction:
            raise TransactionError(f"A transaction is open, which {does} no branch; COMMIT or ROLLBACK first.")

"""Conflicts that a notebook shows in a view, whose buttons run the operation again with rules."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias

from ducklake_lab.catalog.lake import Lake
from ducklake_lab.errors import MergeConflictError, UsageError
from ducklake_lab.hooks import hook

if TYPE_CHECKING:
    from ducklake_lab.catalog.branches.branch import Branch
    from ducklake_lab.merging.conflicts import OnConflict
    from ducklake_lab.model.entries import Snapshot

#: Operations that bring changes together.
Kind = Literal["revert", "merge", "pick", "rebase"]
#: The snapshot that an operation made, or the rebased branch; both have a `snapshot_id`.
Made: TypeAlias = "Snapshot | Branch"


class _Session(Protocol):
    @property
    def current_lake(self) -> Lake: ...
    @property
    def in_transaction(self) -> bool: ...


@dataclass(frozen=True, slots=True)
class Settling:
    """Actions of a view of conflicts.

    Attributes:
        kind: gives the words of the view.
        title: what has the conflicts: `merge of branch fix`.
        lake: the lake that was in use; in another one nothing is done.
        session: runs it.
        previewed: returns the diff under some rules, None for none; commits nothing.
        run: commits under some rules, or stages in the open transaction.
        compared: returns the diff of what was made.
    """

    kind: Kind
    title: str
    lake: Lake
    session: _Session
    previewed: Callable[[OnConflict], Any]
    run: Callable[[OnConflict], Made | None]
    compared: Callable[[Any], Any]

    def check(self) -> None:
        """Raises UsageError where another lake is in use now."""
        if self.session.current_lake is not self.lake:
            raise UsageError(f"The lake in use is another one now; USE {self.lake.alias} first.")

    def conflicts(self) -> MergeConflictError | None:
        """Return the conflicts of now; None for none."""
        self.check()
        try:
            self.previewed(None)
        except MergeConflictError as error:
            return error
        return None

    def preview(self, rules: OnConflict) -> str:
        """Return the static diff under some rules."""
        self.check()
        return str(self.previewed(rules)._repr_html_())

    def apply(self, rules: OnConflict) -> tuple[Made | None, bool]:
        """Run it under some rules; return what was made, and whether an open transaction holds it instead."""
        self.check()
        return self.run(rules), self.session.in_transaction

    def shown(self, made: Made) -> str:
        """Return the static diff of what was made."""
        return str(self.compared(made)._repr_html_())


@contextmanager
def shown_in_view(
    session: Any,
    kind: Kind,
    title: str,
    preview: Callable[[OnConflict], Any],
    run: Callable[[OnConflict], Made | None],
    compared: Callable[[Any], Any] | None = None,
) -> Iterator[None]:
    """Let a notebook show the conflicts that the block ends with in a view: of an error that nobody caught, or displayed.

    Args:
        kind, title, preview, run, compared: as of `Settling`; what is made is a snapshot by default.
    """
    lake = session.current_lake

    def made_by(snapshot: Snapshot) -> Any:
        return session.diff(snapshot.snapshot_id - 1, snapshot.snapshot_id)

    try:
        yield
    except MergeConflictError as error:
        error.settling = Settling(kind, title, lake, session, preview, run, compared or made_by)
        _give_view(error)
        raise


def _give_view(error: MergeConflictError) -> None:
    """Gives an error the methods by which IPython shows it; a terminal of Python shows it as any other."""

    def show() -> None:
        hook("conflicts.show")(error)

    is_shown = False

    def render() -> list[str]:
        nonlocal is_shown
        if not is_shown:  # a kernel asks again for its reply
            is_shown = True
            show()
        return [f"{type(error).__name__}: {error}"]

    error._ipython_display_ = show  # type: ignore[attr-defined]
    error._render_traceback_ = render  # type: ignore[attr-defined]

"""Conflicts of a revert, merge, pick or rebase, settled one by one or many at once; nothing is committed before *Apply*."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import traitlets

from ducklake_lab.errors import MergeConflictError, UsageError
from ducklake_lab.widgets import conflict_rows, values
from ducklake_lab.widgets.html import cell, clip, count, counted, escape, heading, scroll, table, view, visible
from ducklake_lab.widgets.mounted import Mounted, script, styles

if TYPE_CHECKING:
    from ducklake_lab.merging.conflicts import OnConflict
    from ducklake_lab.session.settling import Kind, Made, Settling

#: Rows of the static view.
LIMIT = 200
_SCOPES = ("cell", "row", "column", "table", "all")


@dataclass(frozen=True, slots=True)
class Words:
    """The words of an operation.

    Attributes:
        rules: each with what its button says, and the place of the value that it takes among the three.
        heads: names of the three values.
        done: what happened, such as `Reverted`.
        taken: what became of conflicts under each rule, such as `kept`.
        nothing: no snapshot was made, in words.
        at: the word between `done` and the snapshot.
    """

    rules: tuple[tuple[str, str, int], ...]
    heads: tuple[str, str, str]
    done: str
    taken: tuple[str, str]
    nothing: str
    at: str = "as"


_REVERT = Words(
    (("keep", "keep today's value", 2), ("revert", "revert to the value before", 0)),
    ("before", "then", "now"),
    "Reverted",
    ("kept", "reverted"),
    "Nothing was left to take back, so no snapshot was made.",
)
_MERGE = Words(
    (("ours", "keep what the lake has", 1), ("theirs", "take what the branch has", 2)),
    ("base", "lake", "branch"),
    "Merged",
    ("as in the lake", "as on the branch"),
    "Nothing was left to merge, so no snapshot was made.",
)
WORDS: dict[Kind, Words] = {
    "revert": _REVERT,
    "merge": _MERGE,
    "pick": replace(_MERGE, done="Picked", nothing="Nothing was left to pick, so no snapshot was made."),
    "rebase": replace(_MERGE, done="Rebased", at="onto"),
}

#: Runs it with rules for all its conflicts; returns what was made, and whether an open transaction holds it instead.
Run = Callable[["OnConflict"], "tuple[Made | None, bool]"]


class ConflictsView(Mounted):
    """The conflicts of a revert with the values before, then and now; of a merge, pick or rebase with those of both sides.

    Attributes:
        conflicts: those that no rule settles yet.
        choices: the chosen rule of each conflict; None for none.
        on_conflict: the chosen rules in the form that `session.revert` and `session.merge` take.
        state: `open`, or `settled` after *Apply*.
    """

    _esm = script("conflicts")
    _css = styles("conflicts")

    heading = traitlets.Unicode().tag(sync=True)
    heads = traitlets.List(traitlets.Unicode()).tag(sync=True)
    rules: traitlets.List[list[object]] = traitlets.List().tag(sync=True)
    passing = traitlets.Int(0).tag(sync=True)
    total = traitlets.Int(0).tag(sync=True)
    unsettled = traitlets.Int(0).tag(sync=True)
    look = traitlets.Int(0).tag(sync=True)
    state = traitlets.Unicode("open").tag(sync=True)
    outcome = traitlets.Unicode("").tag(sync=True)

    def __init__(
        self,
        words: Words,
        title: str,
        error: MergeConflictError,
        *,
        ask: Callable[[], MergeConflictError | None],
        run: Run,
        preview: Callable[[OnConflict], str],
        shown: Callable[[Made], str],
    ) -> None:
        self._words = words
        self._ask = ask
        self._run = run
        self._preview = preview
        self._shown = shown
        self._result = ""
        self.conflicts: Sequence[Any] = ()
        self.choices: list[str | None] = []
        heading = f"Conflicts of the {title}"
        super().__init__(heading=heading, heads=list(words.heads), rules=[list(rule) for rule in words.rules])
        self._take(error)

    def _take(self, error: MergeConflictError) -> None:
        """Shows conflicts; those that were there before, with the same values, keep their choices."""
        earlier_choices = {
            _place(one): (one.to_dict(), rule) for one, rule in zip(self.conflicts, self.choices, strict=True)
        }
        earlier = [(one, *earlier_choices.get(_place(one), (None, None))) for one in error.conflicts]
        self.conflicts = error.conflicts
        self.choices = [rule if was == one.to_dict() else None for one, was, rule in earlier]
        with self.hold_sync():
            self.passing, self.total = len(self.conflicts), error.total
            self._note()

    def _note(self) -> None:
        with self.hold_sync():
            self.unsettled = sum(rule is None for rule in self.choices)
            self.look += 1

    def settle(self, rule: str, scope: str, place: int = 0) -> None:
        """Chooses a rule for conflicts.

        Args:
            rule: one of the operation's.
            scope: `cell` for the conflict at the place alone, `row`, `column` or `table` for those beside it, or `all`.

        Raises:
            UsageError: there is no such rule, scope or place.
        """
        names = [name for name, *_ in self._words.rules]
        if rule not in names or scope not in _SCOPES or not 0 <= place < len(self.conflicts):
            raise UsageError(f"A conflict is settled by {' or '.join(names)}, for a {', '.join(_SCOPES)}.")
        table_name, row_id, column = _place(self.conflicts[place])
        for at, other in enumerate(self.conflicts):
            its_table, its_row, its_column = _place(other)
            same = {
                "cell": at == place,
                "row": (its_table, its_row) == (table_name, row_id),
                "column": (its_table, its_column) == (table_name, column),
                "table": its_table == table_name,
                "all": True,
            }
            self.choices[at] = rule if same[scope] else self.choices[at]
        self._note()

    @property
    def on_conflict(self) -> OnConflict:
        """The rules of all conflicts, each by name: one that came since stays a conflict.

        Raises:
            UsageError: a conflict has no rule; or a definition and rows of one table have two, which no mapping says.
        """
        if self.unsettled:
            raise UsageError(f"{counted(self.unsettled, 'conflict')} not settled yet; choose what holds for each.")
        if self.total > len(self.conflicts):
            (rule, *others) = set(self.choices)
            if others:
                raise UsageError(
                    f"Only {count(len(self.conflicts))} of {count(self.total)} conflicts are listed; one rule for all "
                    "settles them, or tables=… takes a part of the tables."
                )
            return rule
        rules: dict[str, Any] = {}
        for one, rule in zip(self.conflicts, self.choices, strict=True):
            rules.setdefault(one.table, []).append((one, rule))
        return {name: _of_table(name, own) for name, own in rules.items()}

    def answer_page(self, content: dict[str, Any]) -> tuple[dict[str, Any], list[bytes]]:
        """Returns a range of conflicts with their choices."""
        start = int(content["start"])
        stop = start + int(content["count"])
        shown = self.conflicts[start:stop]
        return {}, [conflict_rows.packed(shown, self._words.heads, self.choices[start:stop])]

    def answer_settle(self, content: dict[str, Any]) -> None:
        """Chooses a rule; see `settle`."""
        self.settle(str(content["rule"]), str(content["scope"]), int(content["place"]))

    def answer_preview(self, _content: dict[str, Any]) -> dict[str, Any]:
        """Returns the static diff under the chosen rules; commits nothing."""
        rules = self.on_conflict
        self._check()
        return {"html": self._preview(rules)}

    def answer_apply(self, _content: dict[str, Any]) -> dict[str, Any]:
        """Runs it under the chosen rules."""
        if self.state != "open":
            raise UsageError("This has been applied already.")
        rules = self.on_conflict
        self._check()
        made, is_staged = self._run(rules)
        self._result = "" if made is None else self._shown(made)
        with self.hold_sync():
            self.outcome = self._told(made, is_staged=is_staged)
            self.state = "settled"
        self.rewrite()
        return {"html": self._result}

    def answer_still(self, _content: dict[str, object]) -> dict[str, object]:
        """Returns the static view, for a reloaded page."""
        return {"html": self._repr_html_()}

    def _check(self) -> None:
        """Shows the conflicts of now, if they are others.

        Raises:
            UsageError: later commits made or changed conflicts.
        """
        error = self._ask()
        if error is None:
            return
        shown = [one.to_dict() for one in self.conflicts]
        if error.total == self.total and [one.to_dict() for one in error.conflicts] == shown:
            return
        self._take(error)
        raise UsageError("Commits that came since have changed the conflicts; look at those without a choice.")

    def _told(self, made: Made | None, *, is_staged: bool) -> str:
        """Returns the outcome in words."""
        words = self._words
        if made is None and not is_staged:
            return words.nothing
        ours = sum(rule == words.rules[0][0] for rule in self.choices)
        counts = f"{counted(ours, 'conflict')} {words.taken[0]}, {count(len(self.choices) - ours)} {words.taken[1]}"
        if made is None:
            return f"{words.done} in the open transaction, until COMMIT or ROLLBACK: {counts}."
        return f"{words.done} {words.at} snapshot {made.snapshot_id}: {counts}."

    def _ipython_display_(self) -> None:
        self._display_to_rewrite()

    def still(self) -> str:
        heads = (heading("table"), heading("row", right=True), *(map(heading, ("column", *self._words.heads, "why"))))
        rows = []
        for one in self.conflicts[:LIMIT]:
            name, row, column, *three, why = conflict_rows.texts(one)
            cells = [cell(escape(name)), cell(escape(row), right=True), cell(escape(column))]
            cells += [cell(values.NULL if text is None else escape(text)) for text in three]
            rows.append(f"<tr>{''.join(cells)}{cell(escape(why))}</tr>")
        first = f"first {count(LIMIT)} of " if self.total > LIMIT else ""
        (ours, *_), (theirs, *_) = self._words.rules
        open_ = f'nothing is written; on_conflict="{ours}" or "{theirs}" settles them, also by row and column'
        said = self.outcome or open_
        foot = f'<div class="dlk-foot">{first}{counted(self.total, "conflict")} · {escape(said)}</div>'
        title = f'<p><span class="dlk-title">{escape(self.heading)}</span></p>'
        return view(title + scroll(table(heads, rows), "Conflicts") + foot, label=self.heading) + self._result

    def __repr__(self) -> str:
        null = conflict_rows.null
        lines = [f"{one}: {' → '.join(map(null, conflict_rows.texts(one)[3:6]))}" for one in self.conflicts[:LIMIT]]
        return "\n".join(map(visible, [f"{self.heading}: {counted(self.total, 'conflict')}", *lines]))


def _place(conflict: Any) -> tuple[str, int | None, str | None]:
    return conflict.table, conflict.row_id, conflict.column


def _of_table(name: str, own: Sequence[tuple[Any, str | None]]) -> Any:
    """Returns the rules of one table's conflicts."""
    if any(one.row_id is None and one.column is None for one, _ in own):
        # a definition has no name in a mapping
        (rule, *others) = {rule for _, rule in own}
        if others:
            raise UsageError(
                f"The conflicts of {name} need one rule: its definition settles with the table as a whole."
            )
        return rule
    rules: dict[Any, Any] = {}
    for one, rule in own:
        if one.row_id is None:
            rules[one.column] = rule
        elif one.column is None:
            rules[one.row_id] = rule
        else:
            rules.setdefault(one.row_id, {})[one.column] = rule
    return rules


def of_error(error: MergeConflictError) -> ConflictsView:
    """Returns the view of the conflicts of an error that a session raised."""
    settling: Settling = error.settling
    return ConflictsView(
        WORDS[settling.kind],
        visible(clip(settling.title, 120)),
        error,
        ask=settling.conflicts,
        run=settling.apply,
        preview=settling.preview,
        shown=settling.shown,
    )


def show(error: MergeConflictError) -> None:
    """Displays the conflicts of an error in a notebook."""
    from IPython.display import display

    display(of_error(error))

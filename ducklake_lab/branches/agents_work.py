"""Work of agents on the branches of a lake: their commits, as the catalogs of the branches note them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, overload

from ducklake_lab.branches.making import open_place
from ducklake_lab.branches.remarks import Verdict, read_remarks, verdict_of
from ducklake_lab.catalog.branches import registry
from ducklake_lab.catalog.branches.branch import Branch
from ducklake_lab.catalog.branches.location import catalog_of
from ducklake_lab.catalog.branches.root import root_lake
from ducklake_lab.catalog.identity import change_mark
from ducklake_lab.catalog.lake import Lake
from ducklake_lab.errors import DuckLakeError
from ducklake_lab.hooks import hook
from ducklake_lab.model.history import HistoryEntry
from ducklake_lab.model.units import counted
from ducklake_lab.scan.history import lake_history

#: Beginning of the authors of agents' commits; the name of the agent's program follows.
AUTHOR = "agent:"
#: Beginning of the names of branches that agents make where nobody names one.
NAMED = "agent-"


@dataclass(frozen=True, slots=True)
class AgentBranch:
    """A branch on which agents work.

    Attributes:
        branch: the branch.
        agents: names of their programs, each once, in the order of their first commits.
        commits: the agents' commits on the branch since it began, oldest first.
        others: number of commits on it by others.
        tip: its newest snapshot; None where its catalog cannot be read.
        to_merge: number of its commits that are not merged; None for a branch of another branch than the lake in use.
        verdict: of reviewers, as of `Review`.
        problem: why its catalog cannot be read, such as another process that writes it; None where it can.
    """

    branch: Branch
    agents: tuple[str, ...]
    commits: tuple[HistoryEntry, ...]
    others: int
    tip: int | None
    to_merge: int | None
    verdict: Verdict | None
    problem: str | None = None

    @property
    def rows(self) -> tuple[int, int | None]:
        """Rows that the agents' commits added and removed in all; updated rows count on both sides. None where unknown."""
        removed = [one.rows_removed for one in self.commits]
        known = [number for number in removed if number is not None]
        return sum(one.rows_added for one in self.commits), sum(known) if len(known) == len(removed) else None

    @property
    def at_most(self) -> bool:
        """Whether `rows` are upper bounds."""
        return any(one.at_most for one in self.commits)

    def to_dict(self) -> dict[str, Any]:
        """The branch as values that JSON has."""
        return {
            "branch": self.branch.name,
            "parent": self.branch.parent,
            "began_at": self.branch.snapshot_id,
            "agents": list(self.agents),
            "snapshot_id": self.tip,
            "to_merge": self.to_merge,
            "verdict": self.verdict,
            "problem": self.problem,
            "commits_of_others": self.others,
            "commits": [
                {
                    "snapshot_id": one.info.snapshot_id,
                    "time": one.info.snapshot_time.isoformat(),
                    "author": one.info.author,
                    "message": one.info.commit_message,
                    "changes": list(one.changes),
                    "rows_added": one.rows_added,
                    "rows_removed": one.rows_removed,
                    "at_most": one.at_most,
                    "statement": one.note.statement if one.note is not None else None,
                }
                for one in self.commits
            ],
        }

    def __repr__(self) -> str:
        by = ", ".join(self.agents) or "no commits yet"
        return f"<Branch {self.branch.name}: {counted(len(self.commits), 'commit')} by {by}>"


class AgentsWork(Sequence[AgentBranch]):
    """Branches on which agents work, those that began last first.

    Attributes:
        lake: the lake's title.
    """

    def __init__(
        self,
        lake: str,
        branches: Sequence[AgentBranch],
        again: Callable[[], AgentsWork] | None = None,
        has_changed: Callable[[], bool] = lambda: False,
        review: Callable[[str], Any] | None = None,
    ) -> None:
        self.lake = lake
        self._branches = tuple(branches)
        self._again = again
        self._has_changed = has_changed
        self._review = review

    def newer(self) -> AgentsWork:
        """The work as it is now; this object where nothing has changed. Catalog files that did not change stay closed."""
        if self._again is None or not self._has_changed():
            return self
        found = self._again()
        if found.to_dict() != self.to_dict():
            return found
        # a database may write to its file when it is read
        self._has_changed = found._has_changed
        return self

    def review(self, name: str) -> Any:
        """The review of one of the branches; see `Session.review`."""
        return self._review(name) if self._review is not None else None

    def to_dict(self) -> dict[str, Any]:
        """The work as values that JSON has."""
        return {"lake": self.lake, "branches": [one.to_dict() for one in self]}

    def to_json(self) -> str:
        """`to_dict` as JSON."""
        return json.dumps(self.to_dict(), ensure_ascii=False, indent=2)

    @overload
    def __getitem__(self, index: int) -> AgentBranch: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[AgentBranch]: ...
    def __getitem__(self, index: int | slice) -> AgentBranch | Sequence[AgentBranch]:
        return self._branches[index]

    def __len__(self) -> int:
        return len(self._branches)

    def __iter__(self) -> Iterator[AgentBranch]:
        return iter(self._branches)

    def _repr_mimebundle_(self, **_options: object) -> Any:
        return hook("agents.live")(self)

    def _repr_html_(self) -> str:
        html: str = hook("agents.html")(self)
        return html

    def __repr__(self) -> str:
        head = f"<Work of agents in {self.lake}: {counted(len(self), 'branch', 'branches')}>"
        return "\n".join([head, *(line for one in self for line in _lines(one))])


def _lines(one: AgentBranch) -> Iterator[str]:
    yield repr(one) if one.problem is None else f"{one!r} {one.problem}"
    for entry in one.commits:
        note = entry.note
        said = entry.info.commit_message or (" ".join((note.statement or "").split()) if note is not None else "")
        removed = "?" if entry.rows_removed is None else f"{entry.rows_removed:,}"
        yield f"  {entry.info.snapshot_id}  {entry.info.author}  +{entry.rows_added:,} -{removed}  {said[:200]}"


def agents_work(
    lake: Lake,
    *,
    again: Callable[[], AgentsWork] | None = None,
    review: Callable[[str], Any] | None = None,
) -> AgentsWork:
    """Return the work of agents on the branches of a lake.

    Args:
        again: returns the work as it is later.
        review: reviews a branch.
    """
    root = root_lake(lake)
    # marks from before what is read: a commit in between is seen as a change
    seen = [(root.lake, _mark(root.lake))]
    is_whole = True
    with root.lake.connect() as connection:
        listed = list(registry.read_branches(connection).values())
    own = root.own.name if root.own is not None else None
    found: list[AgentBranch] = []
    for branch in sorted(listed, key=lambda one: one.created, reverse=True):
        # a catalog file that another process writes cannot be opened, and is looked at again
        try:
            opened = open_place(lake, catalog_of(root.lake.location, branch.name, branch.generation), branch)
        except DuckLakeError as error:
            is_whole = False
            if branch.name.casefold().startswith(NAMED):
                found.append(AgentBranch(branch, (), (), 0, None, None, None, str(error)))
            continue
        seen.append((opened, _mark(opened)))
        try:
            one = _work_on(opened, branch, lake if branch.parent == own else None)
        except DuckLakeError as error:
            is_whole = False
            one = AgentBranch(branch, (), (), 0, None, None, None, str(error))
        finally:
            opened.database.dispose()
        if one.commits or branch.name.casefold().startswith(NAMED):
            found.append(one)

    def has_changed() -> bool:
        return not is_whole or any(_mark(each) != mark for each, mark in seen)

    return AgentsWork(lake.title, found, again, has_changed, review)


def _mark(lake: Lake) -> object:
    try:
        return change_mark(lake)
    except (DuckLakeError, OSError) as error:
        return str(error)


def _work_on(opened: Lake, branch: Branch, parent: Lake | None) -> AgentBranch:
    """Return the work on an opened branch.

    Args:
        parent: the lake that it began on, which knows what was merged; None where that is not in use.
    """
    merged = None
    if parent is not None:
        with parent.connect() as connection:
            merged = registry.read_merged(connection, branch).snapshot_id
    with opened.connect() as connection:
        tip = opened.snapshot(connection).snapshot_id
        entries = lake_history(opened, connection, between=(branch.snapshot_id + 1, tip))
        verdict = verdict_of(read_remarks(connection), tip, branch.generation)
    mine = [one for one in entries if (one.info.author or "").startswith(AUTHOR)]
    agents = dict.fromkeys((one.info.author or "").removeprefix(AUTHOR).strip() for one in mine)
    since = branch.snapshot_id if merged is None else merged
    to_merge = sum(one.info.snapshot_id > since for one in entries) if parent is not None else None
    return AgentBranch(branch, tuple(agents), tuple(mine), len(entries) - len(mine), tip, to_merge, verdict)

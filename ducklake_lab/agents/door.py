"""The functions that agents call. Reading leaves a lake as it is; changing works on a branch; nothing merges."""

from __future__ import annotations

import re
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from datetime import datetime
from functools import wraps
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, TypeVar

from ducklake_lab.agents.allowed import changing, reading
from ducklake_lab.agents.limits import Limits, cut, time_limit
from ducklake_lab.agents.trees import Known
from ducklake_lab.branches.agents_work import AUTHOR, NAMED
from ducklake_lab.branches.making import list_branches
from ducklake_lab.catalog.branches.branch import Branch, check_name
from ducklake_lab.errors import DuckLakeError, EntryExistsError, EntryNotFoundError, UsageError
from ducklake_lab.model.quoting import quote_identifier
from ducklake_lab.model.state import CatalogState
from ducklake_lab.session.session import Session

_Given = ParamSpec("_Given")
_Found = TypeVar("_Found")
#: Branches of one minute that a door tries to name.
_SAME_MINUTE = 100


def _in_turn(
    function: Callable[Concatenate[Door, _Given], _Found],
) -> Callable[Concatenate[Door, _Given], _Found]:
    """Run a function of the door alone, within the time limit."""

    @wraps(function)
    def run(self: Door, /, *args: _Given.args, **kwargs: _Given.kwargs) -> _Found:
        with self._lock, time_limit(self.limits.seconds, self._interrupt):
            return function(self, *args, **kwargs)

    return run


class Door:
    """A lake for one agent.

    Args:
        uri: the lake's URI, without a branch.
        branch: the branch for changes; one that the first change makes by default.
        client: the name of the agent's program, for the author of commits.
        options: arguments of `Session.attach`.
    """

    def __init__(
        self,
        uri: str,
        branch: str | None = None,
        client: str = "unknown",
        limits: Limits | None = None,
        **options: Any,
    ) -> None:
        self.limits = limits or Limits()
        self.client = client
        self._uri = uri
        self._options = {**options, "create_if_not_exists": False}
        self._wanted = check_name(branch) if branch is not None else None
        self._lock = threading.RLock()
        self._stack = ExitStack()
        self._base = self._opened(read_only=True)
        self._branch: Session | None = None
        if self._base.current_branch is not None:
            self._stack.close()
            raise UsageError("The lake's URI names a branch; name the lake, and the branch by --branch.")
        if self._wanted is not None and self._find(self._wanted) is not None:
            self._branch = self._on_branch(self._wanted)

    def _opened(self, *, read_only: bool) -> Session:
        session = self._stack.enter_context(Session(engine="duckdb"))
        session.attach(self._uri, read_only=read_only, **self._options)
        # DuckDB would spill to files in the working directory
        session.sql(f"SET temp_directory = ''; SET memory_limit = '{self.limits.memory}'")
        return session

    def close(self) -> None:
        with self._lock:
            self._stack.close()

    def __enter__(self) -> Door:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def branch(self) -> str | None:
        """The branch that changes go to; None before the first one."""
        return self._branch.current_branch if self._branch is not None else None

    @property
    def _reading(self) -> Session:
        return self._branch or self._base

    def _interrupt(self) -> None:
        self._base.interrupt()
        if self._branch is not None:
            self._branch.interrupt()

    # What agents call

    @_in_turn
    def list_tables(self) -> dict[str, Any]:
        """Return the tables and views with their columns, and the rows of each table."""
        session = self._reading
        state = session.current_lake.read_newest()
        tables = [
            {
                "table": f"{info.schema}.{info.table.name}",
                "rows": info.record_count,
                "columns": {column.name: column.type for column in info.table.columns},
                **({"comment": info.table.comment} if info.table.comment else {}),
            }
            for info in session.tables()
        ]
        views = [state.qualified_name(view) for view in state.views.values()]
        return self._fitting({"lake": self._title, "branch": self.branch, "tables": tables, "views": views}, "tables")

    @_in_turn
    def describe(self, table: str) -> dict[str, Any]:
        """Return the columns of a table or view, with their types, defaults and comments."""
        session = self._reading
        known = self._known(session)
        name = _quoted(table)
        text = reading(f"DESCRIBE {name}", known)
        described = session.sql(text, at=known.state.snapshot.snapshot_id)
        rows = [dict(zip(described.columns, map(_text, row), strict=True)) for row in described.fetchall()]
        return self._fitting({"table": table, "columns": rows}, "columns")

    @_in_turn
    def query(self, sql: str, at: int | None = None, limit: int | None = None) -> dict[str, Any]:
        """Run one query, and return its columns with their types, and rows whose values are texts.

        Args:
            at: the snapshot that is read; the newest by default.
            limit: the most rows, within the door's own limit.
        """
        session = self._reading
        known = self._known(session, at)
        snapshot = known.state.snapshot.snapshot_id
        text = reading(sql, known)
        most = max(0, min(limit if limit is not None else self.limits.rows, self.limits.rows))
        if text.split(None, 1)[0].upper() in ("SHOW", "DESCRIBE"):
            listed = session.sql(text, at=snapshot)
            names, types, rows = list(listed.columns), [str(one) for one in listed.types], listed.fetchall()
        else:
            described = session.sql(f"DESCRIBE {text}", at=snapshot).fetchall()
            names, types = [str(row[0]) for row in described], [str(row[1]) for row in described]
            # DuckDB writes the values as texts, and cuts them before they are in memory here
            columns = f"left(CAST(COLUMNS(*) AS VARCHAR), {self.limits.cell + 1})"
            rows = session.sql(f"SELECT {columns} FROM (\n{text}\n) AS answer LIMIT {most + 1}", at=snapshot).fetchall()
        return self._answer(snapshot, names, types, rows, most)

    @_in_turn
    def history(self, table: str | None = None, last: int = 20) -> dict[str, Any]:
        """Return the newest snapshots, oldest first, with the changes of each."""
        session = self._reading
        if table is not None and not self._known(session).entries(_parts(table)):
            raise EntryNotFoundError(f"The lake has no table {table[:80]!r}.")
        history = session.snapshots(
            ".".join(map(quote_identifier, _parts(table))) if table else None, last=max(1, last)
        )
        snapshots = [
            {
                "snapshot_id": one.info.snapshot_id,
                "time": one.info.snapshot_time.isoformat(),
                "author": one.info.author,
                "message": one.info.commit_message,
                "changes": one.info.changes_made,
            }
            for one in history
        ]
        return self._fitting({"branch": self.branch, "snapshots": snapshots}, "snapshots")

    @_in_turn
    def diff(self) -> str:
        """Return what the branch changed, and the conflicts with what the lake changed meanwhile, as Markdown."""
        return cut(self._base.review(self._own_branch()).to_markdown(), self.limits.characters)

    @_in_turn
    def change(self, sql: str, message: str | None = None) -> dict[str, Any]:
        """Run one statement that changes rows or definitions on the branch, and commit it there.

        The first change makes the branch. Nothing is made where the statement is refused.
        """
        text = changing(sql, self._known(self._reading))
        if self._branch is None:
            self._branch = self._made()
            text = changing(sql, self._known(self._branch))
        result = self._branch.sql(text, message=cut(message, 1000) if message else None)
        rows = result.fetchall()
        count = rows[0][0] if len(rows) == 1 and len(rows[0]) == 1 and type(rows[0][0]) is int else None
        snapshot = self._branch.current_snapshot().snapshot_id
        return {"branch": self.branch, "snapshot_id": snapshot, "changed_rows": count}

    @_in_turn
    def ask_review(self) -> dict[str, Any]:
        """Write the review of the branch as a page, and return its link with a summary for people."""
        name = self._own_branch()
        review = self._base.review(name)
        # a folder that only this user can enter
        page = Path(tempfile.mkdtemp(prefix="ducklake-review-")) / f"{name}.html"
        review.to_html(page)
        return {
            "link": page.as_uri(),
            "mergeable": review.is_mergeable,
            "summary": cut(review.to_markdown(), self.limits.characters),
            "next": f"A person merges it: ducklake-lab merge LAKE {name}",
        }

    # Branches

    def _own_branch(self) -> str:
        if (name := self.branch) is None:
            raise UsageError("There is no branch yet: the first change makes it.")
        return name

    def _find(self, name: str) -> Branch | None:
        return next(
            (one for one in list_branches(self._base.current_lake) if one.name.casefold() == name.casefold()), None
        )

    def _made(self) -> Session:
        session = self._opened(read_only=False)
        if self._wanted is not None:
            if self._find(self._wanted) is None:
                session.branch(self._wanted)
            return self._switched(session, self._wanted)
        stem = f"{NAMED}{datetime.now():%Y%m%d-%H%M}"
        for number in range(1, _SAME_MINUTE):
            name = stem if number == 1 else f"{stem}-{number}"
            try:
                session.branch(name)
            except EntryExistsError:
                continue
            return self._switched(session, name)
        raise UsageError("Too many branches were made in this minute; wait for the next one.")

    def _on_branch(self, name: str) -> Session:
        return self._switched(self._opened(read_only=False), name)

    def _switched(self, session: Session, name: str) -> Session:
        session.switch(name)
        session.author = lambda: f"{AUTHOR}{_client_name(self.client)}"
        # people see what an agent ran
        session.record_statements = True
        return session

    # Answers

    @property
    def _title(self) -> str:
        return self._base.current_lake.alias

    def _known(self, session: Session, at: int | None = None) -> Known:
        lake = session.current_lake

        def state_at(version: int) -> CatalogState:
            with lake.connect() as connection:
                return lake.state(connection, lake.snapshot(connection, version))

        state = lake.read_newest() if at is None else state_at(at)
        return Known(lake.alias, state, state_at=state_at, is_branch=lake.branch is not None)

    def _answer(self, snapshot: int, names: list[str], types: list[str], rows: list[Any], most: int) -> dict[str, Any]:
        shown = [[_cell(value, self.limits.cell) for value in row] for row in rows[:most]]
        answer = {
            "snapshot_id": snapshot,
            "branch": self.branch,
            "columns": [{"name": name, "type": kind} for name, kind in zip(names, types, strict=True)],
            "rows": shown,
            "has_more_rows": len(rows) > most,
        }
        return self._fitting(answer, "rows")

    def _fitting(self, answer: dict[str, Any], key: str) -> dict[str, Any]:
        """Return an answer without the last items that exceed the limit of characters."""
        left = self.limits.characters
        kept = []
        for item in answer[key]:
            left -= len(str(item))
            if left < 0:
                break
            kept.append(item)
        if len(kept) < len(answer[key]):
            return {
                **answer,
                key: kept,
                "cut": f"{len(answer[key]) - len(kept):,} more {key} exceed the size of an answer",
            }
        return answer


def _text(value: object) -> str | None:
    return None if value is None else str(value)


def _cell(value: object, limit: int) -> str | None:
    text = _text(value)
    return text if text is None or len(text) <= limit else f"{text[:limit]}…"


def _parts(table: str) -> list[str]:
    """Return the parts of a name from an agent, which has no quotes."""
    return [part for part in table.split(".") if part]


def _quoted(table: str) -> str:
    if not (parts := _parts(table)):
        raise UsageError("A name of a table is needed.")
    return ".".join(map(quote_identifier, parts))


def _client_name(client: str) -> str:
    return re.sub(r"[^\w .+-]", "", client)[:60].strip() or "unknown"


@contextmanager
def one_line() -> Iterator[None]:
    """Let errors of the project through, and replace others by a line that holds nothing of them.

    Raises:
        UsageError: another error happened; its cause is kept for the log of the program.
    """
    try:
        yield
    except DuckLakeError:
        raise
    except Exception as error:
        raise UsageError(f"The request failed by an error inside of DuckLake Lab ({type(error).__name__}).") from error

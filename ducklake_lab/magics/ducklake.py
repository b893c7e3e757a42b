"""`%ducklake` and `%%ducklake`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from IPython.core.interactiveshell import InteractiveShell
from IPython.core.magic import Magics, line_cell_magic, magics_class, no_var_expand
from IPython.display import display

from ducklake_lab.errors import UnsupportedFeatureError, UsageError
from ducklake_lab.magics import messages, options
from ducklake_lab.magics.commands import Commands, Help
from ducklake_lab.magics.progress import ProgressLine
from ducklake_lab.magics.session import LakeSession, Variables
from ducklake_lab.widgets import result as result_view

#: First words of SQL, which tell a statement from a misspelt subcommand.
_SQL_WORDS = frozenset(
    "abort alter analyze attach begin call checkpoint comment commit copy create deallocate delete desc describe "
    "detach drop end execute explain from insert load merge pivot pragma prepare reset rollback select set show start "
    "summarize table truncate unpivot update use vacuum values with".split()
)


def _connect(uri: str, **given: Any) -> LakeSession:
    from ducklake_lab.session import connect

    session: Any = connect(uri, **given)
    return session  # type: ignore[no-any-return]


@magics_class
class DuckLakeMagics(Magics):
    """The magics of one notebook; they hold its session, and never claim `%sql`.

    Args:
        connect: opens a session on a lake; `ducklake_lab.connect` unless given.
    """

    def __init__(self, shell: InteractiveShell, connect: Callable[..., LakeSession] = _connect) -> None:
        super().__init__(shell)
        self.session: LakeSession | None = None
        self._open = connect
        self._commands = Commands(self._current, self._attach)

    @no_var_expand
    @line_cell_magic("ducklake")  # type: ignore[arg-type]
    def ducklake(self, line: str, cell: str | None = None) -> Any:
        """Runs SQL or a subcommand; `%ducklake help` lists what there is."""
        sql = ""
        traceback = "--traceback" in line
        try:
            given, rest = options.parse(line)
            traceback = given.traceback
            if given.help:
                return Help(options.usage())
            if cell is None and not given.name and not _is_sql(rest):
                return self._commands.run(rest)
            sql = cell or "" if not rest else f"{rest}\n{cell or ''}"
            return self._run(given, sql, whole_cell=cell is not None)
        except (Exception, KeyboardInterrupt) as error:
            if not traceback:
                messages.quiet(error, sql)
            raise

    def _run(self, given: options.CellOptions, sql: str, *, whole_cell: bool) -> Any:
        session = self._current()
        if not sql.strip():
            raise UsageError("There is no SQL in this cell. %ducklake help tells more.")
        if given.at is not None:
            raise UnsupportedFeatureError("--at is not supported yet; write FROM table AT (VERSION => 7) in the SQL.")
        limit = given.limit or result_view.LIMIT
        line = ProgressLine(self._shell, lambda: bool(getattr(session, "spark_starting", False)), whole_cell=whole_cell)
        with _in_lake(session, given.lake), line as report:
            session.on_progress = report
            try:
                result = session.sql(sql, Variables(self._shell.user_ns), dialect=given.dialect or "duckdb")
                if given.show and result.is_query:
                    # The rows to show are computed here, while there is a line to tell of it.
                    result.head(limit + 1)
            finally:
                session.on_progress = None
        if given.name:
            self._shell.user_ns[given.name] = result.spark() if result.is_query else result
        if not given.show:
            return None
        result.limit = limit
        if given.name:
            display(result)
            return None
        return result

    @property
    def _shell(self) -> InteractiveShell:
        assert self.shell is not None
        return self.shell

    def _current(self) -> LakeSession:
        if self.session is None:
            raise UsageError("No lake is connected. Connect one: %ducklake connect ducklake:metadata.ducklake")
        return self.session

    def _attach(self, uri: str, given: dict[str, Any]) -> LakeSession:
        """The session with the lake attached; `uri` may also name a variable that holds a session."""
        held = self._shell.user_ns.get(uri)
        if hasattr(held, "attach") and hasattr(held, "sql"):
            self.session = held
        elif self.session is None:
            self.session = self._open(uri, **given)
        else:
            self.session.use(self.session.attach(uri, **given).alias)
        assert self.session is not None
        return self.session


@contextmanager
def _in_lake(session: LakeSession, lake: str | None) -> Iterator[None]:
    """Makes a lake current for a while; None leaves it as it is."""
    if lake is None:
        yield
        return
    before = f"{session.current_lake.alias}.{session.current_schema}"
    session.use(lake)
    try:
        yield
    finally:
        session.use(before)


def _is_sql(text: str) -> bool:
    word = text.partition(" ")[0].rstrip(";(").casefold()
    # USE is a subcommand as well; both do the same.
    return text.startswith(("(", "--", "/*")) or (word in _SQL_WORDS and word != "use")

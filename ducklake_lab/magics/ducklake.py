"""The magics `%ducklake` and `%%ducklake`."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from functools import partial
from pathlib import Path
from typing import Any

import traitlets
from IPython.core.interactiveshell import ExecutionInfo, InteractiveShell
from IPython.core.magic import Magics, line_cell_magic, magics_class, no_var_expand
from IPython.display import display

from ducklake_lab.errors import DuckLakeError, SqlError, UsageError, did_you_mean
from ducklake_lab.magics import messages, options
from ducklake_lab.magics.author import default_author
from ducklake_lab.magics.commands import Commands, Help
from ducklake_lab.magics.completion import MagicCompleter
from ducklake_lab.magics.compose import (
    Composed,
    SavedQuery,
    compose,
    explained,
    fill_template,
    names_of_template,
    view_of,
)
from ducklake_lab.magics.notebook import place_of
from ducklake_lab.magics.pins import pins_of
from ducklake_lab.magics.progress import ProgressLine, beginning
from ducklake_lab.magics.read_variables import CellRun, ReadVariables
from ducklake_lab.magics.session import LakeSession, Variables
from ducklake_lab.magics.settings import expand, read_connections
from ducklake_lab.model.quoting import path_parts, quoted_if_needed
from ducklake_lab.redaction import hide
from ducklake_lab.widgets import grids, recorded
from ducklake_lab.widgets import result as result_view

#: First words of SQL, which distinguish a statement from a misspelt subcommand.
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
    """The magics of one notebook. They hold its session, and leave `%sql` to other extensions.

    `%config DuckLakeMagics` lists the settings; `[tool.ducklake_lab]` in a pyproject.toml of the notebook's folder or
    a parent folder sets them for a project.

    Args:
        connect: opens a session on a lake; `ducklake_lab.connect` by default.

    Attributes:
        on_running: called with the beginning of a statement and its progress, or None at its end.
    """

    limit = traitlets.Int(result_view.LIMIT, min=1, help="Rows shown unless --limit says otherwise.").tag(config=True)
    engine = traitlets.Enum(
        options.ENGINES, None, allow_none=True, help="Where rows are worked: auto, spark, duckdb; None: the session's."
    ).tag(config=True)
    dialect = traitlets.Enum(options.DIALECTS, "duckdb", help="The dialect of SQL in cells.").tag(config=True)
    output = traitlets.Enum(options.OUTPUTS, "spark", help="What `name <<` assigns.").tag(config=True)
    prestart = traitlets.Bool(True, help="Start Spark while you read, after connecting to a large lake.").tag(
        config=True
    )
    jinja = traitlets.Bool(False, help="Fill in Jinja templates without being asked with --jinja.").tag(config=True)
    traceback = traitlets.Bool(False, help="Show whole stack traces.").tag(config=True)
    progress = traitlets.Bool(True, help="Show what Spark does while a cell runs.").tag(config=True)
    lake = traitlets.Unicode("", help="URI or connection to open when a cell runs and no lake is connected.").tag(
        config=True
    )
    author = traitlets.Unicode(
        None, allow_none=True, help="Author of commits; None: DUCKLAKE_LAB_AUTHOR, or Git's user.name; empty: nobody."
    ).tag(config=True)
    grid = traitlets.Bool(True, help="Make results grids while the kernel lives; False leaves them tables.").tag(
        config=True
    )
    record_statements = traitlets.Bool(
        True, help="Commits name their statement, its duration, notebook and cell in commit_extra_info."
    ).tag(config=True)
    record_reads = traitlets.Bool(
        True,
        help="Outputs name their lakes, snapshots and tables in their metadata, so that JupyterLab marks old ones.",
    ).tag(config=True)
    connections = traitlets.Unicode(
        "~/.config/ducklake_lab/connections.toml", help="File of named connections; ${NAME} is an environment variable."
    ).tag(config=True)

    def __init__(
        self, shell: InteractiveShell, connect: Callable[..., LakeSession] = _connect, **settings: object
    ) -> None:
        super().__init__(shell, **settings)
        self.session: LakeSession | None = None
        self.on_running: Callable[[str, Mapping[str, object] | None], None] | None = None
        self._open = connect
        grids.by_default = self.grid
        recorded.wanted = self.record_reads
        self._source = ""
        recorded.source = lambda: self._source
        shell.events.register("pre_run_cell", self._note_source)
        self.saved: dict[str, SavedQuery] = {}
        self.pins = pins_of(shell)
        self.read_variables = ReadVariables(shell)
        self.commands = Commands(self._current, self._attach, self.named_connections, self.pins)
        self.completer = MagicCompleter(
            self.commands, lambda: self.session, self.saved, self.named_connections, lambda: self._all_variables
        )

    @no_var_expand
    @line_cell_magic("ducklake")  # type: ignore[arg-type]
    def ducklake(self, line: str, cell: str | None = None) -> Any:
        """Runs SQL or a subcommand; `%ducklake help` lists all."""
        shown = ""
        traceback = self.traceback or "--traceback" in line
        try:
            given, rest = options.parse(line)
            traceback = self.traceback or given.traceback
            if given.help:
                return Help(options.usage())
            if cell is None and not given.name and not _is_sql(rest):
                with _in_lake(self._current(), given.lake) if given.lake else nullcontext():
                    return self.commands.run(rest)
            shown = cell or "" if not rest else f"{rest}\n{cell or ''}"
            if given.jinja or self.jinja:
                self.read_variables.note(names_of_template(shown))
                shown = fill_template(shown, self._all_variables)
            with self.read_variables.statement() as cell_run:
                return self._run(given, shown, cell_run, whole_cell=cell is not None)
        except (Exception, KeyboardInterrupt) as error:
            from ducklake_lab.session.redacting import may_hold_secret

            # IPython's stack traces begin with the cell
            text = f"{line}\n{cell or ''}"
            if not traceback or may_hold_secret(text) or hide(text) != text:
                messages.quiet(error, shown)
            else:
                messages.loud(error)
            raise

    def _run(self, given: options.CellOptions, sql: str, cell_run: CellRun, *, whole_cell: bool) -> object:
        session = self._current()
        if not sql.strip():
            raise UsageError("There is no SQL in this cell. %ducklake help tells more.")
        composed = compose(sql, given.compose, self.saved)
        # rows for a Spark DataFrame are not computed here first
        lazy = "spark" if given.name and (given.output or self.output) == "spark" else None
        choices: dict[str, Any] = {
            "engine": given.engine or self.engine or lazy,
            "dialect": given.dialect or self.dialect,
            "message": given.message,
        }
        if given.view:  # first, because nothing may run if the cell is no query
            self._keep_view(given.view, session, composed, choices["dialect"], given.lake)
        with _in_lake(session, given.lake), _places(composed):
            if given.preview:
                cell_run.wrote = True
                return self._preview(session, composed, choices, whole_cell=whole_cell)
            if given.compare:
                return self._compare(given, session, composed, whole_cell=whole_cell)
            if given.explain:
                composed = explained(composed)
            result = self._result(given, session, composed, {**choices, "at": given.at}, whole_cell=whole_cell)
            cell_run.wrote |= result.info.wrote
            if given.save:
                self.saved[given.save] = SavedQuery(sql, given.compose)
            value = self._value(given, result)
        if given.name:
            self._shell.user_ns[given.name] = value
        if not given.show:
            return None
        if given.name:
            display(result)
            return None
        return value if given.output else result

    def _result(
        self,
        given: options.CellOptions,
        session: LakeSession,
        composed: Composed,
        choices: Mapping[str, Any],
        *,
        whole_cell: bool,
    ) -> Any:
        """Returns the result of the cell's SQL, with the rows to display computed."""
        limit = given.limit or self.limit
        with self._progress(session, composed.sql, whole_cell=whole_cell):
            result = session.sql(composed.sql, self._variables, variables=self._variables, **choices)
            if given.show and result.is_query:
                # compute the displayed rows while the progress line is shown
                result.head(limit + 1)
        result.limit = limit
        result.grid = given.grid
        return result

    def _keep_view(self, name: str, session: LakeSession, composed: Composed, dialect: str, lake: str | None) -> None:
        """Creates a temporary view of the cell's query, with the current values of its parameters."""
        if dialect != "duckdb":
            raise UsageError("--view keeps a query in DuckDB's dialect; leave --dialect out.")
        view = view_of(name, composed)
        with _in_lake(session, lake), _places(view):
            session.sql(view.sql, self._variables, variables=self._variables)

    def _preview(
        self, session: LakeSession, composed: Composed, choices: Mapping[str, Any], *, whole_cell: bool
    ) -> Any:
        from ducklake_lab.widgets.preview import PreviewView

        with self._progress(session, composed.sql, whole_cell=whole_cell):
            shown = PreviewView(session.preview(composed.sql, self._variables, variables=self._variables, **choices))
        # COMMIT and ROLLBACK in another cell end it, too
        events = self._shell.events

        def follow(*_: object) -> None:
            shown.follow()
            if shown.state != "open":
                events.unregister("post_run_cell", follow)

        events.register("post_run_cell", follow)
        return shown

    def _compare(
        self, given: options.CellOptions, session: LakeSession, composed: Composed, *, whole_cell: bool
    ) -> object:
        """Returns the diff of the cell's answers at two snapshots."""
        assert given.compare is not None  # asked for before
        with self._progress(session, composed.sql, whole_cell=whole_cell):
            diff = session.compare(composed.sql, *given.compare, params=self._variables)
        if given.limit:
            diff = diff.showing(limit=given.limit)
        if given.name:
            self._shell.user_ns[given.name] = diff
        return diff if given.show else None

    def _value(self, given: options.CellOptions, result: Any) -> Any:
        if not result.is_query or not (given.name or given.output):
            return result
        kind = given.output or self.output
        return getattr(result, str(kind))()

    @contextmanager
    def _progress(self, session: LakeSession, sql: str, *, whole_cell: bool) -> Iterator[None]:
        if not self.progress:
            yield
            return
        page = partial(self.on_running, beginning(sql)) if self.on_running is not None else None
        line = ProgressLine(
            self._shell,
            lambda: bool(getattr(session, "spark_starting", False)),
            whole_cell=whole_cell,
            page=page,
        )
        with line as report:
            session.on_progress = report
            try:
                yield
            finally:
                session.on_progress = None

    def _note_source(self, info: ExecutionInfo) -> None:
        self._source = info.raw_cell if isinstance(info.raw_cell, str) else ""

    @property
    def _shell(self) -> InteractiveShell:
        assert self.shell is not None
        return self.shell

    @property
    def _variables(self) -> Variables:
        return self.read_variables.variables()

    @property
    def _all_variables(self) -> Variables:
        return Variables(self._shell.user_ns, self._shell.user_ns_hidden)

    def _current(self) -> LakeSession:
        if self.session is None and self.lake:
            self._attach(self.lake, {}, lambda session: self.pins.apply(session, leave_out=False))
        if self.session is None:
            raise UsageError("No lake is connected. Connect one: %ducklake connect ducklake:metadata.ducklake")
        return self.session

    def _author(self) -> str | None:
        return default_author() if self.author is None else self.author.strip() or None

    @traitlets.observe("author")
    def _author_changed(self, _: Any) -> None:
        if self.session is not None:
            self.session.author = self._author

    @traitlets.observe("grid")
    def _grid_changed(self, _: object) -> None:
        grids.by_default = self.grid

    @traitlets.observe("record_reads")
    def _records_changed(self, _: object) -> None:
        recorded.wanted = self.record_reads

    @traitlets.observe("record_statements")
    def _recording_changed(self, _: object) -> None:
        if self.session is not None:
            self.session.record_statements = self._recording

    @property
    def _recording(self) -> object:
        return partial(place_of, self._shell) if self.record_statements else False

    def spark_sessions(self) -> list[Any]:
        """The Spark session of the session, where it has been started."""
        return [self.session.spark] if getattr(self.session, "spark_started", False) else []  # type: ignore[union-attr]

    def named_connections(self) -> dict[str, dict[str, Any]]:
        """Returns the saved connections by name."""
        return read_connections(Path(self.connections).expanduser())

    def _attach(self, uri: str, given: dict[str, Any], then: Callable[[LakeSession], Any] | None = None) -> Any:
        """Attaches a lake and makes it current; `uri` may name a connection, or a variable that holds a session.

        Args:
            then: reads the lake and returns the result; on its error the lake is detached.
        """
        held = self._shell.user_ns.get(uri)
        if hasattr(held, "attach") and hasattr(held, "sql"):
            self.session = held
            return then(self.session) if then is not None else None
        named = self.named_connections() if ":" not in uri else {}
        if uri in named:
            given = {"alias": uri, **expand(named[uri]), **given}
            uri = given.pop("uri")
        elif named and not Path(uri).suffix and (hint := did_you_mean(uri, named)):
            raise UsageError(f"There is no such connection in {self.connections}.{hint}")
        if self.session is None:
            session, before = self._open(uri, **given), None
            session.author = self._author
            session.record_statements = self._recording
            alias = session.current_lake.alias
        else:
            session, before = self.session, _place(self.session)
            alias = session.attach(uri, **given).alias
        try:
            if session is self.session:
                session.use(quoted_if_needed(alias))
            result = then(session) if then is not None else None
        except BaseException:
            session.detach(alias)
            if before is not None:
                session.use(before)
            raise
        self.session = session
        if self.prestart and result is not None:
            session.expect(result.bytes)
        return result


def _place(session: LakeSession) -> str | None:
    """Returns the lake and schema of unqualified names; None if no lake is in use."""
    try:
        return ".".join(map(quoted_if_needed, (session.current_lake.alias, *path_parts(session.current_schema))))
    except DuckLakeError:
        return None


@contextmanager
def _in_lake(session: LakeSession, lake: str | None) -> Iterator[None]:
    """Makes a lake current during the block; None keeps the current one."""
    if lake is None:
        yield
        return
    before = _place(session)
    session.use(lake)
    try:
        yield
    finally:
        if before is not None:
            session.use(before)


@contextmanager
def _places(composed: Composed) -> Iterator[None]:
    """Converts the positions in errors to positions in the cell."""
    try:
        yield
    except SqlError as error:
        composed.relocate(error)
        raise


def _is_sql(text: str) -> bool:
    word = text.partition(" ")[0].rstrip(";(").casefold()
    if word == "load" and re.fullmatch(r"\w+\s+[^'\s;]*[^'\w\s;][^'\s;]*", text):
        return False  # a file: LOAD takes the name of an extension
    if word == "merge" and not re.match(r"\w+\s+(INTO\b|/\*|--$)", text, re.IGNORECASE):
        return False  # a branch
    # USE and DESCRIBE are also subcommands, which do at least as much.
    return text.startswith(("(", "--", "/*")) or (word in _SQL_WORDS and word not in ("use", "describe"))

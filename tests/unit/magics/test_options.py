from datetime import datetime

import pytest

from ducklake_lab.errors import UsageError
from ducklake_lab.magics.options import CellOptions, moment, parse


@pytest.mark.parametrize(
    ("line", "rest"),
    [
        ("", ""),
        ("SELECT a -> 'b'", "SELECT a -> 'b'"),
        ("SELECT -1", "SELECT -1"),
        ("-1 + 2", "-1 + 2"),
        ("SELECT x[a:b], $$ --limit 3 $$, :m", "SELECT x[a:b], $$ --limit 3 $$, :m"),
        ("-- a comment", "-- a comment"),
        ("SELECT 1 << 2", "SELECT 1 << 2"),
        ("a <<< b", "a <<< b"),
    ],
)
def test_sql_is_left_alone(line: str, rest: str):
    assert parse(line) == (CellOptions(), rest)


def test_options_end_where_sql_begins():
    options, rest = parse("--limit 5 --lake=a --no-display SELECT --limit 7")
    assert (options.limit, options.lake, options.show) == (5, "a", False)
    assert rest == "SELECT --limit 7"


@pytest.mark.parametrize(
    ("line", "name", "show"),
    [
        ("jan <<", "jan", False),
        ("jan<<", "jan", False),
        ("jan = <<", "jan", True),
        ("--limit 3 jänner =<< ", "jänner", True),
        ("--no-display jan = <<", "jan", False),
    ],
)
def test_names(line: str, name: str, show: bool):
    options, rest = parse(line)
    assert (options.name, options.show, rest) == (name, show, "")


def test_sql_may_follow_the_name():
    options, rest = parse("jan << SELECT 1 << 2")
    assert (options.name, rest) == ("jan", "SELECT 1 << 2")


def test_values_may_be_quoted():
    assert parse('--at "2026-03-02 09:30" SELECT')[0].at == datetime(2026, 3, 2, 9, 30)
    assert parse("--at 17")[0].at == 17
    assert parse("--lake 'my lake'")[0].lake == "my lake"


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("--limt 3", "no option --limt. Did you mean --limit"),
        ("--limit", "--limit needs a value: --limit ROWS"),
        ("--limit 0", "above 0"),
        ("--limit ten", 'not "ten"'),
        ("--dialect mysql", "duckdb or spark"),
        ("--no-display=1", "no option"),
    ],
)
def test_wrong_options(line: str, message: str):
    with pytest.raises(UsageError, match=message.replace(".", r"\.").replace("?", r"\?")):
        parse(line)


def test_moment():
    assert moment("7") == 7
    assert moment("2026-03-02") == datetime(2026, 3, 2)


def test_new_options():
    options, rest = parse("-o pandas --engine=duckdb --with a --with b --save c --jinja --explain x << SELECT -o")
    assert (options.output, options.engine, options.compose, options.save) == ("pandas", "duckdb", ("a", "b"), "c")
    assert (options.jinja, options.explain, options.name, rest) == (True, True, "x", "SELECT -o")


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("--output csv", "spark, pandas, polars or arrow"),
        ("--save 'a b'", "name that SQL can use"),
        ("-m", "--message needs a value: --message TEXT"),
        ("--view 'a b'", "--view takes a name that SQL can use"),
        ("--view v --at 3", "--view does not go together with --at"),
        ("--view v --preview", "--view does not go together with --preview"),
        ("--explain --view v", "--view does not go together with --explain"),
        ("--preview --explain", "does not go together with --explain"),
        ("--preview --at 0", "does not go together with --at"),
        ("--preview x << SELECT 1", "does not go together with name <<"),
    ],
)
def test_wrong_new_options(line: str, message: str):
    with pytest.raises(UsageError, match=message):
        parse(line)


@pytest.mark.parametrize(
    "line", ["-m 'fix it' SELECT -m", '--message "fix it" SELECT -m', "--message='fix it' SELECT -m"]
)
def test_a_message_of_the_commits(line: str) -> None:
    options, rest = parse(line)
    assert (options.message, rest) == ("fix it", "SELECT -m")

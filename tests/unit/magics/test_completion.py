"""Completion from a real catalog, as IPython asks for it. `|` is the cursor."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from IPython.core.completer import provisionalcompleter
from IPython.core.interactiveshell import InteractiveShell

import ducklake_lab as dl
from ducklake_lab.magics import load

Complete = Callable[[str], list[str]]


@pytest.fixture(scope="module")
def shell(tmp_path_factory: pytest.TempPathFactory) -> Iterator[InteractiveShell]:
    InteractiveShell.clear_instance()
    shell = InteractiveShell.instance()
    folder = tmp_path_factory.mktemp("lake")
    magics = load(shell)
    magics.connections = str(folder / "none.toml")
    session = dl.connect(f"ducklake:{folder}/lake.ducklake", engine="duckdb", ducklake_version="1.1")
    session.sql(
        "CREATE TABLE flights (carrier VARCHAR, dep_delay DOUBLE, place STRUCT(lon DOUBLE, spot STRUCT(zone INT)))"
    )
    session.sql('CREATE TABLE "Odd name" (a INTEGER); CREATE SCHEMA raw; CREATE TABLE raw.events (kind VARCHAR)')
    session.sql(
        "CREATE SCHEMA sales; CREATE SCHEMA sales.europe; CREATE TABLE sales.europe.orders (amount INTEGER); "
        'CREATE SCHEMA "sales.europe"'
    )
    session.tag("q3-close", 2)
    magics.session = session  # type: ignore[assignment]
    shell.user_ns |= {
        "flute": 1,
        "Report_day": "2013-01-01",
        "report": str,
        "_report": 2,
        "flown": pa.table({"i": [1]}),
    }
    yield shell
    session.close()
    InteractiveShell.clear_instance()


@pytest.fixture
def complete(shell: InteractiveShell) -> Complete:
    def run(marked: str) -> list[str]:
        cursor = marked.index("|")
        text = marked[:cursor] + marked[cursor + 1 :]
        with provisionalcompleter():
            found = list(shell.Completer.completions(text, cursor))
        return [text[: one.start] + one.text + "|" + text[one.end :] for one in found]

    return run


def test_paths_that_can_be_uploaded_are_completed(complete: Complete, tmp_path: Path) -> None:
    for name in ("one.csv", "one two.parquet", "one.doc", ".one.csv"):
        (tmp_path / name).touch()
    (tmp_path / "once").mkdir()
    line = f"%ducklake upload {tmp_path}/"
    assert sorted(complete(f"{line}on|")) == [
        f"%ducklake upload '{tmp_path}/one two.parquet'|",
        f"{line}once/|",
        f"{line}one.csv|",
    ]


def test_tables_of_the_notebook_are_completed_where_tables_stand(complete: Complete) -> None:
    assert "%%ducklake\nSELECT * FROM flown|" in complete("%%ducklake\nSELECT * FROM fl|")
    assert not any("flute" in one for one in complete("%%ducklake\nSELECT * FROM fl|"))
    assert not any("flown" in one for one in complete("%%ducklake\nSELECT fl| FROM flights"))
    assert not any("flown" in one for one in complete("%%ducklake\nSELECT * FROM lake.fl|"))


@pytest.mark.parametrize(
    ("marked", "expected"),
    [
        ("%%ducklake\nSELECT * FROM fl|", "%%ducklake\nSELECT * FROM flights|"),
        ("%ducklake untag q3|", "%ducklake untag q3-close|"),
        ("%ducklake upload x.csv fl|", "%ducklake upload x.csv flights|"),
        ("%%ducklake\nSELECT * FROM o|", '%%ducklake\nSELECT * FROM "Odd name"|'),
        ("%%ducklake\nSELECT * FROM raw.|", "%%ducklake\nSELECT * FROM raw.events|"),
        ("%%ducklake\nSELECT * FROM lake.raw.ev|", "%%ducklake\nSELECT * FROM lake.raw.events|"),
        ("%%ducklake\nSELECT * FROM lake.sn|", "%%ducklake\nSELECT * FROM lake.snapshots(|"),
        ("%%ducklake\nSELECT f.dep| FROM flights AS f", "%%ducklake\nSELECT f.dep_delay| FROM flights AS f"),
        ("%%ducklake\nSELECT car| FROM flights", "%%ducklake\nSELECT carrier| FROM flights"),
        ("%%ducklake\nSELECT place.| FROM flights", "%%ducklake\nSELECT place.lon| FROM flights"),
        ("%%ducklake\nSELECT f.place.spot.z| FROM flights f", "%%ducklake\nSELECT f.place.spot.zone| FROM flights f"),
        ("%%ducklake\nSELECT 1 FROM flights AT (|", "%%ducklake\nSELECT 1 FROM flights AT (VERSION => |"),
        ("%%ducklake\nFROM flights AT (VERSION => |", "%%ducklake\nFROM flights AT (VERSION => 8|"),
        ("%%ducklake\nFROM flights AT (VERSION => |", "%%ducklake\nFROM flights AT (VERSION => 'q3-close'|"),
        ("%%ducklake --at q|", "%%ducklake --at q3-close|"),
        ("%%ducklake\nWITH late AS (FROM flights) FROM la|", "%%ducklake\nWITH late AS (FROM flights) FROM late|"),
        (
            "%%ducklake\nFROM flights f, raw.events e WHERE e.k|",
            "%%ducklake\nFROM flights f, raw.events e WHERE e.kind|",
        ),
        ("%%ducklake\nSELECT date_tr|", "%%ducklake\nSELECT date_trunc(|"),
        ("%%ducklake\n|", "%%ducklake\nSELECT|"),
        ("%%ducklake\nSELECT :fl|", "%%ducklake\nSELECT :flute|"),
        (
            "%%ducklake\nSELECT * FROM flights WHERE carrier = :re|",
            "%%ducklake\nSELECT * FROM flights WHERE carrier = :Report_day|",
        ),
        ("%%ducklake\nSELECT $f|", "%%ducklake\nSELECT $flute|"),
        ("%%ducklake\nselect 1 fro|", "%%ducklake\nselect 1 from|"),
        ("%%ducklake\nUPDATE flights SET dep|", "%%ducklake\nUPDATE flights SET dep_delay|"),
        ("%%ducklake\nALTER TABLE flights SET (parq|", "%%ducklake\nALTER TABLE flights SET (parquet_compression|"),
        (
            "%%ducklake\nALTER TABLE flights RESET (auto_compact, sort|",
            "%%ducklake\nALTER TABLE flights RESET (auto_compact, sort_on_insert|",
        ),
        ("%%ducklake\nSELECT * FROM sa|", "%%ducklake\nSELECT * FROM sales|"),
        ("%%ducklake\nSELECT * FROM sales.eu|", "%%ducklake\nSELECT * FROM sales.europe|"),
        ("%%ducklake\nSELECT * FROM sales.europe.|", "%%ducklake\nSELECT * FROM sales.europe.orders|"),
        ("%%ducklake\nSELECT * FROM lake.sales.europe.o|", "%%ducklake\nSELECT * FROM lake.sales.europe.orders|"),
        ("%%ducklake\nSELECT * FROM lake.sales.e|", "%%ducklake\nSELECT * FROM lake.sales.europe|"),
        ("%%ducklake\nSELECT am| FROM sales.europe.orders", "%%ducklake\nSELECT amount| FROM sales.europe.orders"),
        (
            "%%ducklake\nSELECT o.am| FROM lake.sales.europe.orders o",
            "%%ducklake\nSELECT o.amount| FROM lake.sales.europe.orders o",
        ),
        ('%%ducklake\nSELECT * FROM "sales.|', '%%ducklake\nSELECT * FROM "sales.europe"|'),
        ("%%ducklake\nCALL lake.exp|", "%%ducklake\nCALL lake.expire_snapshots|"),
        ("%ducklake revert --on|", "%ducklake revert --on-conflict|"),
        ("%%ducklake\nCALL lake.res|", "%%ducklake\nCALL lake.restore|"),
        ("%%ducklake --li|", "%%ducklake --limit|"),
        ("%%ducklake --engine d|", "%%ducklake --engine duckdb|"),
        ("%%ducklake --limit 3 SELECT * FROM fl|", "%%ducklake --limit 3 SELECT * FROM flights|"),
        ("%ducklake sna|", "%ducklake snapshots|"),
        ("%ducklake describe fl|", "%ducklake describe flights|"),
        ("%ducklake diff flights |", "%ducklake diff flights 8|"),
        ("%ducklake diff --ht|", "%ducklake diff --html|"),
        ("%ducklake use la|", "%ducklake use lake|"),
        ("x = %ducklake SELECT * FROM fl|", "x = %ducklake SELECT * FROM flights|"),
    ],
)
def test_names_of_the_catalog(complete: Complete, marked: str, expected: str):
    assert expected in complete(marked)


@pytest.mark.parametrize(
    "marked",
    [
        "%%ducklake\nSELECT 'fl|",
        "%%ducklake\nSELECT 1 -- fl|",
        "%%ducklake\nSELECT * FROM flut|",
        "%%ducklake\nSELECT zone| FROM raw.events",
        "%%ducklake\nSELECT * FROM europe.|",
        "%%ducklake\nUSE sales.eu|",
        "%%ducklake\nALTER TABLE flights SET (expire_o|",
        "%%ducklake\nSELECT * FROM flights WHERE dep_delay IN (parq|",
    ],
)
def test_where_nothing_fits_nothing_of_python_is_offered(complete: Complete, marked: str):
    assert set(complete(marked)) <= {marked}


def test_a_parameter_is_a_variable_of_the_notebook_and_nothing_else(complete: Complete):
    assert complete("%%ducklake\nFROM flights WHERE carrier = :re|") == [
        "%%ducklake\nFROM flights WHERE carrier = :Report_day|"
    ]
    assert complete("%%ducklake\nSELECT :|") == [f"%%ducklake\nSELECT :{name}|" for name in ("flute", "Report_day")]
    assert complete("%ducklake SELECT :flu|") == ["%ducklake SELECT :flute|"]


@pytest.mark.parametrize(
    "text", ["SELECT carrier::fl|", "SELECT {'a':fl|", "SELECT x[1:fl|", "SELECT ': fl|", "SELECT : fl|"]
)
def test_other_colons_take_no_variable(complete: Complete, text: str):
    assert not any("flute" in one for one in complete(f"%%ducklake\n{text}"))


@pytest.mark.slow
def test_python_cells_are_left_alone(complete: Complete):
    assert "flute|" in complete("flut|")
    assert not any("flights" in one for one in complete("fl|"))


def test_it_is_fast_and_starts_no_spark(complete: Complete, shell: InteractiveShell):
    complete("%%ducklake\nSELECT * FROM fl|")
    started = time.perf_counter()
    for _ in range(10):
        complete("%%ducklake\nSELECT f.dep| FROM flights AS f")
    assert (time.perf_counter() - started) / 10 < 0.05
    session = shell.magics_manager.registry["DuckLakeMagics"].session
    assert not session.spark_started


def test_new_tables_are_seen_in_a_transaction(complete: Complete, shell: InteractiveShell):
    session = shell.magics_manager.registry["DuckLakeMagics"].session
    session.sql("BEGIN; CREATE TABLE fledgling (a INTEGER)")
    try:
        assert "%%ducklake\nFROM fledgling|" in complete("%%ducklake\nFROM fled|")
    finally:
        session.sql("ROLLBACK")

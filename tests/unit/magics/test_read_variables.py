"""The kernel knows which cells of SQL read a variable that has another value since; it never runs the values' code for that."""

from __future__ import annotations

import decimal
import math
from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime, timedelta, tzinfo
from pathlib import Path
from typing import Any
from uuid import UUID
from zoneinfo import ZoneInfo

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from IPython.core.interactiveshell import InteractiveShell

import ducklake_lab as dl
from ducklake_lab.magics import load
from ducklake_lab.magics.digests import digest
from ducklake_lab.magics.questions import Questions

Run = Callable[..., dict[str, Any]]


@pytest.fixture
def run(shell: InteractiveShell, tmp_path: Path) -> Iterator[Run]:
    magics = load(shell)
    with dl.connect(f"ducklake:{tmp_path}/lake.ducklake", data_path=f"{tmp_path}/d", engine="duckdb") as session:
        magics.session = session  # type: ignore[assignment]
        session.sql("CREATE TABLE t AS SELECT i, i % 3 AS g FROM range(30) r(i)")

        def cell(cell_id: str | None, text: str, *, fails: bool = False) -> dict[str, Any]:
            """Runs a cell; returns the cells that read another value of a variable, with the variables and who changed them."""
            result = shell.run_cell(text, cell_id=cell_id)
            assert result.success != fails
            questions = Questions(dict, cells=magics.read_variables.cells)
            answer: dict[str, Any] = questions.ask("lakes", {})["changed_cells"]
            return {one: found["variables"] for one, found in answer.items()}

        yield cell


def test_a_cell_is_named_when_its_variable_has_another_value(run: Run) -> None:
    assert run("a", "g = 1; other = 1") == {}
    assert run("b", "%%ducklake\nSELECT sum(i) FROM t WHERE g = :g") == {}
    assert run("a", "g = 1; other = 2") == {}
    assert run("a", "g = 2; other = 2") == {"b": {"g": "a"}}
    assert run("c", "print(g)") == {"b": {"g": "a"}}
    assert run("a", "g = 1") == {}
    assert run("d", "g = 3") == {"b": {"g": "d"}}
    assert run("b", "%%ducklake\nSELECT sum(i) FROM t WHERE g = :g") == {}
    assert run("a", "g = 4") == {"b": {"g": "a"}}
    assert run("a", "del g") == {}
    assert run("b", "%%ducklake\nSELECT 1") == {}
    assert run("a", "g = 5") == {}


def test_the_cells_that_this_kernel_ran_are_named(run: Run, shell: InteractiveShell) -> None:
    run("a", "g = 1")
    run("b", "%%ducklake\nSELECT sum(i) FROM t WHERE g = :g")
    run("c", "%%ducklake\nSELECT 1")
    run("d", "%%ducklake --nonsense\nSELECT 1", fails=True)
    run("e", "%%ducklakes\nSELECT 1", fails=True)
    run("f", "%ducklake SELECT 1")
    cells = load(shell).read_variables.cells
    assert Questions(dict, cells=cells).ask("lakes", {})["followed_cells"] == ["b", "c", "d"]
    run("b", "%%ducklake\nSELECT 2")
    assert cells()["followed_cells"] == ["c", "d", "b"]
    run("c", "1")
    assert cells()["followed_cells"] == ["d", "b"]
    # a page also asks kernels that it does not know
    assert "followed_cells" not in Questions(dict).ask("lakes", {})


def test_frames_are_known_by_identity_and_followed_from_cell_to_cell(run: Run) -> None:
    run("a", "low = 10")
    assert run("b", "%%ducklake -o pandas rows <<\nSELECT * FROM t WHERE i >= :low") == {}
    assert run("c", "%%ducklake\nSELECT count(*) FROM rows") == {}
    assert run("a", "low = 20") == {"b": {"low": "a"}}
    assert run("b", "%%ducklake -o pandas rows <<\nSELECT * FROM t WHERE i >= :low") == {"c": {"rows": "b"}}
    assert run("c", "%%ducklake\nSELECT count(*) FROM rows") == {}
    assert run("d", "rows = rows") == {}
    assert run("d", "rows = rows.copy()") == {"c": {"rows": "d"}}


@pytest.mark.parametrize("reads", ["SELECT :g", "SELECT $g", "SELECT 1 WHERE 1 IN :g", "SELECT 1 IN (:g, 2)"])
def test_forms_of_parameters(run: Run, reads: str) -> None:
    run("a", "g = [1, 2]" if "IN :g" in reads else "g = 1")
    run("b", f"%%ducklake\n{reads}")
    assert run("a", "g = [1, 3]" if "IN :g" in reads else "g = 2") == {"b": {"g": "a"}}


def test_templates_read_what_they_name(run: Run) -> None:
    run("a", "g = 1; other = 1")
    run("b", "%%ducklake --jinja\n{% set own = 1 %}SELECT {{ g }} + {{ own }}")
    assert run("a", "other = 2; own = 3") == {}
    assert run("a", "g = 2") == {"b": {"g": "a"}}


def test_a_cell_that_assigns_what_it_reads_is_not_named(run: Run) -> None:
    run("a", "%%ducklake -o pandas x <<\nSELECT 1 AS n")
    assert run("b", "%%ducklake -o pandas x <<\nSELECT n + 1 AS n FROM x") == {}


def test_cells_without_an_id_and_names_of_tables_are_not_followed(run: Run) -> None:
    run("a", "g = 1; t = 1; missing = 1")
    run(None, "%%ducklake\nSELECT :g")
    run("b", "%%ducklake\nFROM t")
    assert run("a", "g = 2; t = 2") == {}
    run("c", "get_ipython().magics_manager.registry['DuckLakeMagics'].session.sql('SELECT :g', {'g': g})")
    assert run("a", "g = 3") == {}


def test_cells_that_write_or_fail_are_said_to_write(run: Run, shell: InteractiveShell) -> None:
    def wrote() -> dict[str, bool]:
        return {one: found["wrote"] for one, found in load(shell).read_variables.changed().items()}

    run("a", "g = 1")
    run("b", "%%ducklake\nINSERT INTO t VALUES (:g, 1)")
    run("c", "%%ducklake\nSELECT :g")
    run("d", "%%ducklake\nSELECT :g FROM nowhere", fails=True)
    run("e", "%ducklake SELECT :g\n%ducklake DELETE FROM t WHERE i = :g")
    run("f", "%%ducklake --preview\nDELETE FROM t WHERE i > :g")
    run("g", "%ducklake ROLLBACK")
    run("a", "g = 2")
    assert wrote() == {"b": True, "c": False, "d": True, "e": True, "f": True}


def test_a_value_that_differs_within_one_run_is_unknown(run: Run) -> None:
    run("a", "for g in (1, 2):\n    get_ipython().run_line_magic('ducklake', 'SELECT :g')")
    assert run("b", "g = 3") == {}


class Watched:
    """An object whose own code must not run."""

    def fail(self, *_: object) -> Any:
        raise AssertionError("The code of a value ran.")

    __eq__ = __hash__ = __repr__ = __str__ = __getattr__ = __reduce_ex__ = fail  # type: ignore[assignment]
    __len__ = __iter__ = __bool__ = __float__ = __int__ = __index__ = __arrow_c_stream__ = fail

    @property
    def __class__(self) -> Any:
        return self.fail()

    @__class__.setter
    def __class__(self, value: Any) -> None:
        self.fail()


class WatchedText(str):
    """A text with code of its own."""

    __slots__ = ()

    def encode(self, *_: Any, **__: Any) -> bytes:
        raise AssertionError("The code of a value ran.")

    __eq__ = __hash__ = __len__ = encode  # type: ignore[assignment]


class WatchedZone(tzinfo):
    def utcoffset(self, _: Any) -> timedelta:
        raise AssertionError("The code of a value ran.")

    __repr__ = __str__ = utcoffset  # type: ignore[assignment]


#: Makes values that are not compared; test runners look at values themselves.
OTHERS: dict[str, Callable[[], object]] = {
    "watched": Watched,
    "text": lambda: WatchedText("x"),
    "texts": lambda: [WatchedText("x")],
    "list": lambda: [Watched()],
    "zone": lambda: datetime(2020, 1, 1, tzinfo=WatchedZone()),
    "object": object,
    "dict": lambda: {"a": 1},
    "nested": lambda: [[1]],
    "function": lambda: digest,
    "long list": lambda: list(range(2000)),
    "long text": lambda: "x" * (2 << 20),
    "long number": lambda: 1 << (2 << 20),
    "not numpy's": lambda: type("int64", (), {"__module__": "numpy"})(),
    "array": lambda: np.array([1, 2]),
    "complex": lambda: 1j,
}


@pytest.mark.parametrize("name", OTHERS)
def test_other_values_are_unknown(name: str) -> None:
    found = digest(OTHERS[name]())
    assert found is None


def test_digests_tell_values_apart_by_type_and_value() -> None:
    values = [
        None, False, True, 0, 1, 10**40, 0.0, -0.0, 1.0, math.inf, "", "1", "é", "\udcff", b"1", decimal.Decimal("1"),
        decimal.Decimal("1.0"), date(2020, 1, 1), datetime(2020, 1, 1), datetime(2020, 1, 1, tzinfo=UTC),
        datetime(2020, 1, 1, tzinfo=ZoneInfo("Asia/Tokyo")), datetime(2020, 1, 1, fold=1), timedelta(1), UUID(int=1),
        [1], (1,), [True], [1, 2], [2, 1], {1}, {1, 2}, frozenset({1, 2}), [], ["1"], np.int64(1), np.int32(1), np.float64(1),
        np.datetime64("2020-01-01"), pd.Timestamp("2020-01-01"), pd.Timestamp("2020-01-02"),
    ]  # fmt: skip
    digests = [digest(value) for value in values]
    assert None not in digests
    assert len({repr(one) for one in digests}) == len(values)
    assert digest(math.nan) == digest(float("nan"))
    assert digest({3, 1, 2}) == digest({1, 2, 3})


@pytest.mark.parametrize(
    "make", [pd.DataFrame, pl.DataFrame, lambda data: pa.table(data), lambda data: pl.LazyFrame(data)]
)
def test_frames_are_compared_by_identity(make: Callable[[Any], Any]) -> None:
    frame = make({"a": [1]})
    first = digest(frame)
    assert first is not None and first == digest(frame)
    assert first != digest(make({"a": [1]}))
    del frame
    # a later frame at the same place is another one
    assert first != digest(make({"a": [1]}))

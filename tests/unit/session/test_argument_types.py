"""Arguments of wrong types: the error names the argument, the types it takes, and the type that was given."""

from __future__ import annotations

import inspect
import traceback
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, SupportsInt

import pyarrow as pa
import pytest

import ducklake_lab as dl
from ducklake_lab.errors import DuckLakeError, UsageError
from ducklake_lab.session.names.argument_types import naming_misfits

ROWS = pa.table({"i": [1]})
#: Values that fit most arguments that a method has to be given.
GIVEN: dict[str, object] = {
    "query": "FROM t",
    "snapshot": 1,
    "snapshot_id": 1,
    "rows": ROWS,
    "finding": "all",
    "row_id": 1,
}


@pytest.fixture
def session(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[dl.Session]:
    monkeypatch.chdir(tmp_path)  # a text may name a file, which is made
    with dl.connect(f"ducklake:{tmp_path}/a.ducklake", alias="lake", engine="duckdb") as session:
        session.sql("CREATE TABLE t AS SELECT 1 AS i")
        yield session


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda s: s.sql(None), "sql(… text …) takes str, not NoneType."),
        (lambda s: s.table(5), "table(… name …) takes str, not int."),
        (lambda s: s.write("t", ROWS), "write(… table …) takes str, not Table."),
        (lambda s: s.appender("t", columns=["i", 3]), "appender(… columns …) takes Sequence[str] | None, not list."),
        (lambda s: s.set_policy(None), "set_policy(… settings …) takes Mapping[str, object], not NoneType."),
        (lambda s: s.catalog(at=[]), "catalog(… at …) takes int | datetime | str | None, not list."),
    ],
)
def test_the_argument_is_named(session: dl.Session, call: Any, said: str) -> None:
    with pytest.raises(UsageError) as raised:
        call(session)
    assert str(raised.value) == said
    assert len(session.snapshots()) == 2


def test_one_text_stands_for_itself(session: dl.Session, tmp_path: Path) -> None:
    (tmp_path / "n.csv").write_text("a\nNA\nN\nA\nB\n")
    session.upload(f"{tmp_path}/n.csv", "n", nulls="NA").apply()
    assert session.sql("FROM n").fetchall() == [(None,), ("N",), ("A",), ("B",)]
    session.sql("CREATE TABLE k AS SELECT 1 AS i, 2 AS d, 3 AS id, 4 AS v; UPDATE k SET v = 5")
    for diff in (session.table("k").diff(key="id"), session.compare("FROM k", 3, 4, key="id")):
        assert list(diff.key) == ["id"]
    with session.appender("k", columns="id") as rows:
        rows.append([7])
    assert session.sql("FROM k WHERE id = 7").fetchall() == [(None, None, 7, None)]


def _methods() -> Iterator[Any]:
    for name, method in vars(dl.Session).items():
        if inspect.isfunction(method) and not name.startswith("_") and name not in ("close", "show"):
            for parameter in list(inspect.signature(method).parameters)[1:]:
                yield pytest.param(name, parameter, id=f"{name}-{parameter}")


@pytest.mark.sampled(6)
@pytest.mark.parametrize(("name", "parameter"), list(_methods()))
def test_no_method_ends_in_an_error_of_python(session: dl.Session, name: str, parameter: str) -> None:
    signature = inspect.signature(getattr(session, name))
    if signature.parameters[parameter].kind is inspect.Parameter.VAR_KEYWORD:
        return
    needed = [
        one.name for one in signature.parameters.values() if one.default is one.empty and one.kind.value in (1, 3)
    ]
    for value in (None, 5, -1, 2**70, 1.5, "", "no", b"x", [], [3], {}, {"t": 1}, ROWS, object()):
        given = {one: GIVEN.get(one, "t") for one in needed} | {parameter: value}
        with suppress(DuckLakeError):
            getattr(session, name)(**given)


def test_types_that_cannot_be_looked_at_fit() -> None:
    def method(one: Any, other: Missing, third: SupportsInt, fourth: list[Missing]) -> None:  # type: ignore[name-defined] # noqa: F821
        raise ValueError("of its own")

    given: tuple[object, ...] = ([], [], [], [1])
    with pytest.raises(ValueError, match="of its own"), naming_misfits(method, *given):
        method(*given)


def test_errors_of_other_causes_stay() -> None:
    def method(text: str) -> None:
        raise TypeError(text)

    with pytest.raises(TypeError, match="of its own"), naming_misfits(method, "of its own"):
        method("of its own")
    with pytest.raises(TypeError, match="missing"), naming_misfits(method):
        method()  # type: ignore[call-arg]


def test_a_secret_beside_it_is_not_shown(session: dl.Session) -> None:
    text = "CREATE SECRET (TYPE s3, KEY_ID 'hunter2', SECRET 'swordfish')"
    with pytest.raises(TypeError, match="positional arguments") as raised:
        session.sql(text, 5, 6, 7)  # type: ignore[call-overload]
    with pytest.raises(UsageError, match=r"attach\(… alias …\) takes") as named:
        session.attach("ducklake:postgres:password=swordfish", alias=5)  # type: ignore[arg-type]
    for error in (raised.value, named.value):
        assert "swordfish" not in str(error)
        assert error.__cause__ is None and (error.__context__ is None or error.__suppress_context__)
    frames = [frame for frame, _ in traceback.walk_tb(named.value.__traceback__)]
    assert not any(
        "swordfish" in repr(frame.f_locals) for frame in frames if "ducklake_lab" in frame.f_code.co_filename
    )

import re

from ducklake_lab.errors import BindError, SqlSyntaxError, UsageError
from ducklake_lab.magics.messages import quiet, render


def lines(error: BaseException, sql: str = "") -> list[str]:
    return [re.sub(r"\x1b\[[\d;]+m", "", line) for line in render(error, sql)]


def test_one_line():
    assert lines(UsageError("No lake is connected.")) == ["No lake is connected."]


def test_the_place_in_the_sql_is_marked():
    sql = "SELECT 1,\n\tdep_dealy\nFROM flights"
    shown = lines(BindError("no such column", line=2, column=2), sql)
    assert shown == ["no such column (line 2, column 2).", "   2 │  ▸dep_dealy◂"]


def test_a_place_in_a_long_line_is_in_view():
    sql = "SELECT " + "a, " * 500 + "dep_dealy"
    shown = lines(SqlSyntaxError("wrong", line=1, column=sql.index("dep_dealy") + 1), sql)
    assert max(map(len, shown)) < 140
    assert shown[1].endswith("▸dep_dealy◂")


def test_a_place_that_is_not_in_the_text_is_left_out():
    assert lines(BindError("wrong", line=9, column=1), "SELECT") == ["wrong (line 9, column 1)."]
    assert lines(BindError("wrong", line=1), "SELECT") == ["wrong (line 1).", "   1 │ SELECT"]


def test_interrupts_and_errors_of_others():
    assert lines(KeyboardInterrupt()) == ["Interrupted: the running statement was cancelled."]
    assert lines(ValueError("first\nsecond")) == ["ValueError: first (--traceback shows where)"]


def test_ipython_asks_the_exception():
    error = UsageError("x")
    quiet(error)
    assert error._render_traceback_() == render(error)  # type: ignore[attr-defined]

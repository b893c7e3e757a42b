from pathlib import Path

import pytest

import ducklake_lab as dl


@pytest.fixture
def session(tmp_path: Path):
    with dl.connect(
        f"ducklake:{tmp_path}/m.ducklake", alias="lake", data_path=f"{tmp_path}/d", engine="duckdb"
    ) as made:
        made.sql("CREATE TABLE t (i INT, z TIMESTAMPTZ, s STRUCT(z TIMESTAMPTZ, u UUID))")
        made.sql("SET TimeZone = 'America/New_York'")
        made.sql("INSERT INTO t VALUES (1, '2024-11-03 01:30:00', {'z': '2024-03-10 02:30:00', 'u': uuid()})")
        yield made


@pytest.mark.slow
def test_every_view_of_a_time_is_in_the_zone_of_the_session(session: dl.Session) -> None:
    text = session.sql("SELECT z::VARCHAR FROM t").fetchall()[0][0]
    assert text == "2024-11-03 01:30:00-05"
    assert str(session.sql("SELECT z FROM t").fetchone()[0]) == text + ":00"
    assert str(session.sql("FROM t").arrow().column("s")[0].as_py()["z"]) == "2024-03-10 03:30:00-04:00"
    assert str(session.table("t").arrow().column("z")[0].as_py()) == text + ":00"
    assert str(session.table("t").pandas()["z"][0]) == text + ":00"
    assert str(session.table("t").changes(0, 2).fetchall()[0][4]) == text + ":00"
    view = session.table("t").view()
    assert view.look(filters={"z": "> 2024-11-03 01:29:59"}) == 1
    assert str(view.page(0, 1).column("z")[0].as_py()) == text + ":00"
    assert view.profile("z").low == text
    rows = session.table("t").diff(1, 2).rows()
    assert str(rows[0].after["z"]) == text + ":00"


def test_snapshots_are_shown_in_the_zone_and_kept_in_utc(session: dl.Session, tmp_path: Path) -> None:
    shown = session.snapshots()[-1].info.snapshot_time
    assert shown == session.current_snapshot().snapshot_time == session.sql("FROM lake.snapshots()").fetchall()[-1][1]
    assert str(shown.tzinfo) == "America/New_York"
    html = session.snapshots()._repr_html_()
    assert "time (America/New_York)" in html and f"{shown:%Y-%m-%d %H:%M}" in html and "UTC" not in html
    low = session.sql("SELECT min_value FROM __ducklake_metadata_lake.ducklake_table_column_stats WHERE column_id = 2")
    assert low.fetchall() == [("2024-11-03 06:30:00+00",)]


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("SET TimeZone = NULL", "TimeZone is the name of a time zone, not NULL"),
        ("SET TimeZone = 'ACT'", 'The time zone "ACT" is not supported'),
        ("PRAGMA TimeZone = 'SystemV/EST5'", 'The time zone "SystemV/EST5" is not supported'),
        ("SET TimeZone = 'Nowhere/At_All'", "Unknown TimeZone 'Nowhere/At_All'"),
        ("SET LOCAL TimeZone = 'UTC'", "SET LOCAL"),
    ],
)
def test_a_zone_that_cannot_be_followed_is_refused(session: dl.Session, statement: str, message: str) -> None:
    with pytest.raises(dl.DuckLakeError, match=message):
        session.sql(statement)
    assert session.sql("SELECT current_setting('TimeZone'), max(z)::VARCHAR FROM t").fetchall() == [
        ("America/New_York", "2024-11-03 01:30:00-05")
    ]


def test_words_for_the_present_are_put_out_under_their_own_names(session: dl.Session) -> None:
    result = session.sql("SELECT current_date, today(), current_timestamp::DATE, i FROM t")
    today, same, now, _ = result.fetchall()[0]
    assert today == same == now
    assert result.columns[0] == "current_date"
    session.sql("SELECT current_timestamp, i FROM t").fetchall()

"""A little of everything in an environment of its own: `python tests/smoke.py FOLDER`; says what it ran with."""

from __future__ import annotations

import sys
from importlib.metadata import version
from pathlib import Path

import ducklake_lab as dl
from ducklake_lab.demo.builder import build

PACKAGES = ("pyspark", "duckdb", "sqlglot", "sqlalchemy", "pyarrow", "pandas", "jupyterlab", "anywidget", "plotly")


def main(folder: Path) -> None:
    from IPython.core.interactiveshell import InteractiveShell

    place = build(folder, report=lambda line: None)
    shell = InteractiveShell.instance()
    shell.run_line_magic("load_ext", "ducklake_lab")
    shell.run_line_magic("ducklake", f"connect {place.uri}")
    with dl.connect(place.uri) as session:
        months = "SELECT month, count(*) AS n FROM flights GROUP BY month ORDER BY month"
        spark, duckdb = (session.sql(months, engine=engine).fetchall() for engine in ("spark", "duckdb"))
        assert spark == duckdb and len(spark) == 12, spark
        flights = session.table("flights")
        diff = flights.diff(13, 14)
        assert diff.summary.changed > 0 and "dlk" in diff._repr_html_()
        session.sql("CREATE TABLE copied AS SELECT * FROM flights WHERE month = 1")
        session.sql("UPDATE copied SET dep_delay = 0 WHERE dep_delay < 0")
        session.write(session.table("copied").spark().limit(10), "few", mode="create")
        assert session.sql("SELECT count(*) FROM few").fetchall() == [(10,)]
        for shown in (session.snapshots(), flights.files(), session.health(), session.sql(months)):
            assert shown._repr_html_()
    for command in ("snapshots", "schema", "files flights", "preview airlines", "diff flights 13 14", "tables"):
        assert shell.run_line_magic("ducklake", command) is not None
    print(f"Python {sys.version.split()[0]}, " + ", ".join(f"{name} {version(name)}" for name in PACKAGES))


if __name__ == "__main__":
    main(Path(sys.argv[1]))

"""The session: attached lakes, statements, tables and transactions. Users import this package."""

from ducklake_lab.collecting import importing

with importing():
    # DuckDB imports pandas with the first statement that has parameters
    import pandas  # noqa: F401

    from ducklake_lab.session.connecting import connect, spark_catalog
    from ducklake_lab.session.rows.result import Result
    from ducklake_lab.session.session import Session
    from ducklake_lab.session.table import TableHandle

__all__ = ["Result", "Session", "TableHandle", "connect", "spark_catalog"]

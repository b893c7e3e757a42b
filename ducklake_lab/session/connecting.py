"""Opens a session with one lake, for its own SQL or for plain Spark."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ducklake_lab.engine.placement import Engine, Limits
from ducklake_lab.session.redacting import redacts
from ducklake_lab.session.session import Session

if TYPE_CHECKING:
    from ducklake_lab.spark.library import SparkSession


@redacts
def connect(
    uri: str,
    alias: str | None = None,
    *,
    spark: SparkSession | None = None,
    engine: Engine = "auto",
    limits: Limits | None = None,
    **options: Any,
) -> Session:
    """Returns a session with one attached lake; takes the arguments of `Session` and `Session.attach`."""
    session = Session(spark=spark, engine=engine, limits=limits)
    session.attach(uri, alias, **options)
    return session


#: Sessions of `spark_catalog`, which live as long as their catalogs.
_kept: dict[tuple[int, str], Session] = {}


@redacts
def spark_catalog(spark: SparkSession, name: str, uri: str, **options: Any) -> Session:
    """Makes a lake a catalog of a SparkSession: `spark.table("name.main.t")`, `df.writeTo(…)`, MERGE INTO.

    Args:
        name: the catalog's name, also the lake's alias in the returned session.
        options: arguments of `Session.attach`.

    Returns:
        The session behind the catalog; its `close()` lets the catalog go.

    Raises:
        UnsupportedFeatureError: the SparkSession cannot have the catalog; the message says why.
        UsageError: another catalog has the name.
    """
    before = _kept.pop((id(spark), name), None)
    if before is not None:
        before.close()
    session = Session(spark=spark)
    try:
        session.attach(uri, name, **options)
        session._catalogs.check(name)
    except BaseException:
        session.close()
        raise
    _kept[id(spark), name] = session
    return session

"""The options of `format("ducklake")`, and the table they name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime

from ducklake_lab.catalog.attach_options import AttachOptions
from ducklake_lab.catalog.lake import Lake, open_lake
from ducklake_lab.catalog.uri import parse_uri
from ducklake_lab.errors import UsageError, did_you_mean
from ducklake_lab.spark.overwriting import OPTION

_OWN = ("path", "uri", "table", "data_path", "version", "timestamp", "filter_pushdown", "starting_version", "stream_id")
#: Of Spark's own writers.
_OVERWRITING = OPTION.casefold()
#: Options that Spark hands on with a stream's own.
_SPARK = ("checkpointlocation", "queryname", "outputmode")


@dataclass(frozen=True, slots=True)
class Target:
    """A table of a lake, by name.

    Attributes:
        at: a snapshot id or time to read as of; None for the newest.
        filter_pushdown: skip files by the query's filters.
        starting_version: the first snapshot a stream reads; None for all rows there are.
        former_stream: a stream's name in earlier releases.
        overwriting: Spark's `partitionOverwriteMode`; None where the option is not given.
    """

    uri: str
    schema: str
    table: str
    data_path: str | None
    at: int | datetime | None
    filter_pushdown: bool
    starting_version: int | None
    former_stream: str | None
    overwriting: str | None

    @classmethod
    def of(cls, options: Mapping[str, str]) -> Target:
        """Reads the options.

        Raises:
            UsageError: one is missing, unknown, or wrong.
        """
        known = {key.casefold(): value for key, value in options.items()}
        for key in known:
            if key not in _OWN and key not in _SPARK and key != _OVERWRITING:
                raise UsageError(f'format("ducklake") has no option "{key}".{did_you_mean(key, _OWN)}')
        uri = known.get("uri") or known.get("path")
        name = known.get("table")
        if not uri or not name:
            raise UsageError(
                'format("ducklake") needs a lake and a table: .option("table", "main.flights").load("ducklake:x.ducklake").'
            )
        if "version" in known and "timestamp" in known:
            raise UsageError('Give the option "version" or "timestamp", not both.')
        schema, _, table = name.rpartition(".")
        at: int | datetime | None = _integer(known, "version")
        if "timestamp" in known:
            at = _time(known["timestamp"])
        return cls(
            uri,
            schema or "main",
            table,
            known.get("data_path"),
            at,
            known.get("filter_pushdown", "false").casefold() == "true",
            _integer(known, "starting_version"),
            known.get("stream_id") or known.get("checkpointlocation"),
            known.get(_OVERWRITING),
        )

    @contextmanager
    def open(self, *, read_only: bool = True) -> Iterator[Lake]:
        """The lake, attached for as long as the block lasts."""
        lake = open_lake(parse_uri(self.uri), "lake", AttachOptions(data_path=self.data_path, read_only=read_only))
        try:
            yield lake
        finally:
            lake.database.dispose()


def _integer(options: Mapping[str, str], name: str) -> int | None:
    value = options.get(name)
    if value is None:
        return None
    try:
        return int(value)
    except ValueError:
        raise UsageError(f'The option "{name}" is a snapshot id, not {value}.') from None


def _time(text: str) -> datetime:
    """A time with its zone: no session's TimeZone is known where Spark runs a data source."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise UsageError(f'"{text}" is not a time; write e.g. 2024-01-15 12:30:00+00:00.') from None
    if moment.tzinfo is None:
        raise UsageError(f'The option "timestamp" needs a time zone; write {text}+00:00 for UTC.')
    return moment

"""The options of `format("ducklake")`, and the table they name."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime

from ducklake_lab.catalog.attach_options import AttachOptions
from ducklake_lab.catalog.lake import Lake
from ducklake_lab.catalog.opening import open_lake
from ducklake_lab.catalog.snapshots import first_snapshot_since
from ducklake_lab.catalog.uri import parse_uri
from ducklake_lab.datasource.offsets import Limits
from ducklake_lab.errors import BindError, UnsupportedFeatureError, UsageError, did_you_mean
from ducklake_lab.model.entries import Column
from ducklake_lab.model.transforms import IN_SPARK
from ducklake_lab.spark.overwriting import OPTION
from ducklake_lab.transaction.batches import StreamBatch

#: Options by their first name, each with the names that users of Delta and Iceberg know.
_NAMES: Mapping[str, tuple[str, ...]] = {
    "path": (),
    "uri": (),
    "table": (),
    "data_path": (),
    "columns": (),
    "version": ("versionAsOf",),
    "timestamp": ("timestampAsOf",),
    "filter_pushdown": (),
    "change_feed": ("readChangeFeed", "readChangeData"),
    "starting_version": ("startingVersion",),
    "starting_timestamp": ("startingTimestamp",),
    "ending_version": ("endingVersion",),
    "ending_timestamp": ("endingTimestamp",),
    "stream_id": (),
    "author": (),
    "message": (),
    "extra_info": ("userMetadata",),
    "app_id": ("txnAppId",),
    "app_version": ("txnVersion",),
    "max_records_per_file": ("maxRecordsPerFile",),
    "compression": ("compression-codec",),
    "merge_schema": ("mergeSchema", "merge-schema"),
    "overwrite_schema": ("overwriteSchema",),
    "replace_where": ("replaceWhere",),
    "partition_by": ("partitionBy",),
    "max_files_per_trigger": ("maxFilesPerTrigger", "streaming-max-files-per-micro-batch"),
    "max_bytes_per_trigger": ("maxBytesPerTrigger",),
    "max_rows_per_trigger": ("maxRowsPerTrigger", "streaming-max-rows-per-micro-batch"),
    "ignore_deletes": ("ignoreDeletes", "streaming-skip-delete-snapshots"),
    "ignore_changes": ("ignoreChanges",),
    "skip_change_commits": ("skipChangeCommits", "streaming-skip-overwrite-snapshots"),
    OPTION: (),
}
_FIRST = {name.casefold(): first for first, others in _NAMES.items() for name in (first, *others)}
#: Options that Spark hands on with a stream's own.
_SPARK = ("checkpointlocation", "queryname", "outputmode")
#: Options of other formats that change what is written; `false` asks for nothing.
_REFUSED = {name.casefold(): name for name in ("clusterByAuto", "dataChange", "optimizeWrite")}
_NAME = r"`(?:[^`]|``)+`|[^`,()]+"
_KEY = re.compile(rf"\s*(?:(\w+)\((?:\s*(\d+)\s*,)?\s*({_NAME})\s*\)|({_NAME}))\s*(?:,|$)")
_COUNT = re.compile(r"(\d+)", re.ASCII)
#: Bytes as Spark writes them, such as `10m`.
_SIZE = re.compile(r"(\d+)(?:([kmgt])?b?)", re.ASCII | re.IGNORECASE)
_CODECS = ("snappy", "zstd", "gzip", "lz4_raw", "brotli", "uncompressed")


@dataclass(frozen=True, slots=True)
class Range:
    """A range of snapshots, both bounds inclusive: ids, tags, or times.

    Attributes:
        start: None for no bound; `latest` for the snapshot after the newest.
        end: None for the newest.
    """

    start: int | datetime | str | None = None
    end: int | datetime | str | None = None

    def first(self, lake: Lake) -> int | None:
        """The id of the first snapshot; None for no bound."""
        if self.start is None or isinstance(self.start, int):
            return self.start
        with lake.connect() as connection:
            if isinstance(self.start, datetime):
                return first_snapshot_since(connection, lake.instant(self.start))
            if self.start.casefold() == "latest":
                return lake.snapshot(connection).snapshot_id + 1
            return lake.snapshot(connection, self.start).snapshot_id


@dataclass(frozen=True, slots=True)
class Writing:
    """Options of a write.

    Attributes:
        author, message, extra_info: for the snapshot.
        batch: the number of a write of an application, which is committed once; None without one.
        max_records: most rows of a file; None for no limit.
        compression: the codec of the files; None for the lake's own.
        overwriting: Spark's `partitionOverwriteMode`; None where the option is not given.
        merge_schema: add columns that the rows have and the table lacks, and widen types.
        overwrite_schema: an overwrite replaces the table's columns, too.
        replace_where: a condition in Spark SQL; an overwrite replaces the rows for which it is true.
        partition_by: the partition keys of a new table, as names of columns and the texts of transforms; None for none.
    """

    author: str | None = None
    message: str | None = None
    extra_info: str | None = None
    batch: StreamBatch | None = None
    max_records: int | None = None
    compression: str | None = None
    overwriting: str | None = None
    merge_schema: bool = False
    overwrite_schema: bool = False
    replace_where: str | None = None
    partition_by: tuple[tuple[str, str], ...] | None = None

    def check(self, *, overwrite: bool) -> None:
        """Raises for options that a write in this mode cannot follow.

        Raises:
            UsageError: an option needs an overwrite, or another one excludes it.
        """
        chosen = [
            name
            for name, given in (
                ("overwriteSchema", self.overwrite_schema),
                ("replaceWhere", self.replace_where is not None),
                (f"{OPTION}=dynamic", (self.overwriting or "").casefold() == "dynamic"),
            )
            if given
        ]
        if len(chosen) > 1:
            raise UsageError(f"{chosen[0]} and {chosen[1]} exclude each other; give one of them.")
        if chosen and chosen[0] != f"{OPTION}=dynamic" and not overwrite:
            raise UsageError(f'{chosen[0]} needs .mode("overwrite").')


@dataclass(frozen=True, slots=True)
class Target:
    """A table of a lake, by name, with the options of its reads and writes.

    Attributes:
        at: a snapshot id, tag or time to read as of; None for the newest.
        columns: names of the columns to read; None for all.
        filter_pushdown: skip files by the query's filters, where Spark hands them on.
        change_feed: read the rows that snapshots changed.
        snapshots: the snapshots of a change feed; its start is the first snapshot that a stream reads.
        former_stream: a stream's name in earlier releases.
        limits: of one batch of a stream.
        ignore_deletes: a stream passes over snapshots that only delete rows.
        ignore_changes: a stream passes over all deletions, and reads new versions of updated rows.
        skip_changes: a stream passes over snapshots that delete or update rows, with what they insert.
    """

    uri: str
    schema: str
    table: str
    data_path: str | None = None
    at: int | datetime | str | None = None
    columns: tuple[str, ...] | None = None
    filter_pushdown: bool = True
    change_feed: bool = False
    snapshots: Range = field(default_factory=Range)
    former_stream: str | None = None
    writing: Writing = field(default_factory=Writing)
    limits: Limits = field(default_factory=Limits)
    ignore_deletes: bool = False
    ignore_changes: bool = False
    skip_changes: bool = False

    @classmethod
    def of(cls, options: Mapping[str, str]) -> Target:
        """Reads the options.

        Raises:
            UnsupportedFeatureError: one asks for what is not supported.
            UsageError: one is missing, unknown, or wrong.
        """
        given = _known(options)
        uri = given.get("uri") or given.get("path")
        name = given.get("table")
        if not uri or not name:
            raise UsageError(
                'format("ducklake") needs a lake and a table: .option("table", "main.flights").load("ducklake:x.ducklake").'
            )
        at = _moment(given, "version", "timestamp")
        schema, _, table = name.rpartition(".")
        snapshots = Range(
            _moment(given, "starting_version", "starting_timestamp"),
            _moment(given, "ending_version", "ending_timestamp"),
        )
        change_feed = _truth(given, "change_feed")
        if snapshots.end is not None and not change_feed:
            raise UsageError('The last snapshot of a change feed needs .option("readChangeFeed", "true").')
        if change_feed and (at is not None or "columns" in given):
            raise UsageError("A change feed reads all columns of a range of snapshots; leave out version and columns.")
        columns = tuple(part.strip() for part in given["columns"].split(",")) if "columns" in given else None
        return cls(
            uri,
            schema or "main",
            table,
            given.get("data_path"),
            at,
            columns,
            _truth(given, "filter_pushdown", default=True),
            change_feed,
            snapshots,
            given.get("stream_id") or given.get("checkpointlocation"),
            _writing(given),
            Limits(*(_limit(given, f"max_{unit}_per_trigger") for unit in ("files", "bytes", "rows"))),
            _truth(given, "ignore_deletes"),
            _truth(given, "ignore_changes"),
            _truth(given, "skip_change_commits"),
        )

    @contextmanager
    def open(self, *, read_only: bool = True) -> Iterator[Lake]:
        """The lake, attached for as long as the block lasts."""
        lake = open_lake(parse_uri(self.uri), "lake", AttachOptions(data_path=self.data_path, read_only=read_only))
        try:
            yield lake
        finally:
            lake.database.dispose()


def option_names() -> list[str]:
    """The names of all options, others for one option included."""
    return [name for first, others in _NAMES.items() for name in (first, *others)]


def chosen_columns(columns: tuple[Column, ...], names: tuple[str, ...], table: str) -> tuple[Column, ...]:
    """The columns of a table with these names, in the order of the names.

    Raises:
        BindError: there is no such column.
    """
    by_name = {column.name.casefold(): column for column in columns}
    for name in names:
        if name.casefold() not in by_name:
            hint = did_you_mean(name, [column.name for column in columns])
            raise BindError(f'{table} has no column "{name}".{hint}')
    return tuple(by_name[name.casefold()] for name in names)


def _known(options: Mapping[str, str]) -> dict[str, str]:
    """The options by their first names."""
    given: dict[str, str] = {}
    for name, value in options.items():
        key = name.casefold()
        first = _FIRST.get(key)
        if first is not None:
            if given.setdefault(first, value) != value:
                raise UsageError(f'The options "{first}" and "{name}" are the same; give one of them.')
        elif key in _REFUSED:
            if value.casefold() != "false":
                raise UnsupportedFeatureError(f'format("ducklake") does not support the option {_REFUSED[key]}.')
        elif key in _SPARK:
            given[key] = value
        else:
            raise UsageError(f'format("ducklake") has no option "{name}".{did_you_mean(name, option_names())}')
    return given


def _writing(given: Mapping[str, str]) -> Writing:
    codec = given["compression"].casefold() if "compression" in given else None
    codec = {"none": "uncompressed", "lz4": "lz4_raw"}.get(codec or "", codec)
    if codec is not None and codec not in _CODECS:
        raise UsageError(f'"{codec}" is no codec; use {", ".join(_CODECS)}.{did_you_mean(codec, _CODECS)}')
    app, number = given.get("app_id"), _integer(given, "app_version")
    if (app is None) != (number is None):
        raise UsageError("Give the options txnAppId and txnVersion together.")
    most = _integer(given, "max_records_per_file")
    return Writing(
        given.get("author"),
        given.get("message"),
        given.get("extra_info"),
        StreamBatch(app, number) if app is not None and number is not None else None,
        most if most is not None and most > 0 else None,
        codec,
        given.get(OPTION),
        _truth(given, "merge_schema"),
        _truth(given, "overwrite_schema"),
        given.get("replace_where"),
        _keys(given["partition_by"]) if "partition_by" in given else None,
    )


def _keys(text: str) -> tuple[tuple[str, str], ...]:
    """The partition keys of a text such as `day, bucket(16, id)`, each as a column and the text of a transform."""
    keys: list[tuple[str, str]] = []
    rest = text
    while rest.strip():
        match = _KEY.match(rest)
        if match is None:
            raise UsageError(f'partitionBy is a list such as "day, bucket(16, id), months(at)", not {text}.')
        name, count, inner, plain = match.groups()
        column = (inner or plain).strip()
        column = column[1:-1].replace("``", "`") if column.startswith("`") else column
        folded = (name or "identity").casefold()
        parts = IN_SPARK.get(folded, (f"{folded}({count})" if count else folded,))
        keys += [(column, part) for part in parts]
        rest = rest[match.end() :]
    return tuple(keys)


def _limit(given: Mapping[str, str], name: str) -> int | None:
    text = given.get(name)
    if text is None:
        return None
    match = _SIZE.fullmatch(text.strip()) if "bytes" in name else _COUNT.fullmatch(text.strip())
    if match is None or int(match[1]) < 1:
        raise UsageError(f'The option "{name}" is a number above 0, not {text}.')
    return int(match[1]) * (1 << 10 * " kmgt".index((match[2] or " ").casefold()) if "bytes" in name else 1)


def _moment(given: Mapping[str, str], by_id: str, by_time: str) -> int | datetime | str | None:
    """A snapshot: a number is an id, another text a tag."""
    version = given.get(by_id)
    if version is None or by_time in given or version.strip().lstrip("+-").isdecimal():
        return _one_of(given, by_id, by_time)
    return version


def _one_of(given: Mapping[str, str], by_id: str, by_time: str) -> int | datetime | None:
    if by_id in given and by_time in given:
        raise UsageError(f'Give the option "{by_id}" or "{by_time}", not both.')
    return _time(by_time, given[by_time]) if by_time in given else _integer(given, by_id)


def _truth(given: Mapping[str, str], name: str, *, default: bool = False) -> bool:
    text = given.get(name, str(default)).casefold()
    if text not in ("true", "false"):
        raise UsageError(f'The option "{name}" is true or false, not {given[name]}.')
    return text == "true"


def _integer(options: Mapping[str, str], name: str) -> int | None:
    value = options.get(name)
    if value is None:
        return None
    try:
        return int(value)
    except ValueError:
        noun = "a snapshot id" if name.endswith("version") and name != "app_version" else "a number"
        raise UsageError(f'The option "{name}" is {noun}, not {value}.') from None


def _time(name: str, text: str) -> datetime:
    """A time with its zone: no session's TimeZone is known where Spark runs a data source."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise UsageError(f'"{text}" is not a time; write e.g. 2024-01-15 12:30:00+00:00.') from None
    if moment.tzinfo is None:
        raise UsageError(f'The option "{name}" needs a time zone; write {text}+00:00 for UTC.')
    return moment

"""Data files, delete files and their statistics (spec: ducklake_data_file, ducklake_file_column_stats)."""

from __future__ import annotations

from dataclasses import dataclass, field

from ducklake_lab.model.mapping import ColumnMapping
from ducklake_lab.model.types import DataType

#: Types whose bounds writers may cut, and bytes of a minimum from which one may have.
CUT_TYPES = ("varchar", "json", "blob")
_CUT = 60
#: The format of delete files that are deletion vectors; that of others is `parquet`.
VECTOR_FORMAT = "puffin"
#: Rows of a row group of a delete file.
DELETES_PER_ROW_GROUP = 1 << 20


@dataclass(frozen=True, slots=True)
class VariantStats:
    """Statistics of one field of a variant column that a file stores in a column of its own, for all its values.

    Attributes:
        path: the field's path as the specification writes it: quoted names, `element` of lists; `root` for the whole.
        shredded_type: the type of that column, the spec's name.
    """

    path: str
    shredded_type: str
    stats: ColumnStats


@dataclass(frozen=True, slots=True)
class ColumnStats:
    """Statistics of one leaf column in one file.

    Attributes:
        column_size_bytes: compressed size, or None.
        value_count: values that are not NULL (the reference counts so), or None where unknown.
        null_count: NULL values, or None.
        min_value: smallest value as text (spec: type encoding for statistics); None where unknown.
        max_value: largest value as text; None where unknown.
        contains_nan: for floats; None for other types and where unknown.
        extra_stats: JSON, of geometries and variants.
        variant_stats: of variants, one per field that is stored in a column of its own.
        min_is_exact: whether `min_value` is a value of the column rather than below all; None where the catalog, or
            its version, does not tell.
        max_is_exact: whether `max_value` is a value of the column; None as for `min_is_exact`.
        written_type: the type of the values in the file, in which the bounds are spelled; None where it is the column's.
    """

    column_id: int
    column_size_bytes: int | None
    value_count: int | None
    null_count: int | None
    min_value: str | None
    max_value: str | None
    contains_nan: bool | None = None
    extra_stats: str | None = None
    variant_stats: tuple[VariantStats, ...] = ()
    min_is_exact: bool | None = None
    max_is_exact: bool | None = None
    written_type: DataType | None = field(default=None, compare=False)

    @property
    def is_inexact(self) -> bool:
        """Returns whether a bound may be no value of the column."""
        return self.min_is_exact is False or self.max_is_exact is False

    def has_least_value(self, kind: DataType) -> bool:
        """Returns whether `min_value` is a value of a column of that type: long texts and bytes may be cut."""
        if self.min_is_exact is not None:
            return self.min_is_exact
        return kind.name not in CUT_TYPES or self.min_value is None or len(self.min_value.encode()) < _CUT

    def has_largest_value(self, kind: DataType) -> bool:
        """Returns whether `max_value` is a value of a column of that type.

        A text that was cut may be short: DuckDB raises its last ASCII character, and drops what follows.
        """
        if self.max_is_exact is not None:
            return self.max_is_exact
        return kind.name not in CUT_TYPES or not self.max_value


def counts(values: int | None, nulls: int | None) -> tuple[int | None, int | None]:
    """`value_count` and `null_count` of a column chunk that a footer counts values and NULLs of.

    Both are None where one is not known, or where there are more NULLs than values: some writers count those of nested
    columns so.
    """
    if values is None or nulls is None or nulls > values:
        return None, None
    return values - nulls, nulls


@dataclass(frozen=True, slots=True)
class WrittenFile:
    """A data file that was written and is not committed yet.

    Attributes:
        path: relative to the table's data path, with `/`, not percent-encoded.
        record_count: rows in the file.
        file_size_bytes: size of the file.
        footer_size: bytes of the Parquet footer's Thrift data.
        column_stats: one per leaf column.
        partition_values: one text (or None) per partition key, in key order; () when not partitioned.
        has_row_ids: the file carries its rows' ids in `_ducklake_internal_row_id`.
        path_is_relative: False where `path` is absolute: of files that were there before.
        is_own: the file was written for the table, and goes if it is not committed.
        mapping: which columns of the table the file's are, by name; None where the file has field ids.
        encryption_key: as the catalog keeps it; None of files that are not encrypted. Never shown.
        row_group_count: None where it is not known.
    """

    path: str
    record_count: int
    file_size_bytes: int
    footer_size: int
    column_stats: tuple[ColumnStats, ...]
    partition_values: tuple[str | None, ...] = ()
    has_row_ids: bool = False
    path_is_relative: bool = True
    is_own: bool = True
    mapping: ColumnMapping | None = None
    encryption_key: str | None = field(default=None, repr=False)
    row_group_count: int | None = None

    def place(self, folder: str) -> str:
        """The absolute path of the file; `folder` is the table's."""
        return folder + self.path if self.path_is_relative else self.path

    def own_paths(self, folder: str) -> list[str]:
        """The absolute path of the file, if it is to be removed when it is not wanted any more."""
        return [folder + self.path] if self.is_own else []


@dataclass(frozen=True, slots=True)
class WrittenDeletes:
    """Positions newly deleted from one data file: in a delete file, or a few to inline.

    Attributes:
        data_file_id: the file the rows are in.
        path: of the delete file, relative to the table's data path; None where none was written.
            It holds the positions of the delete file that it replaces too, but no inlined ones.
        delete_count: rows in the delete file.
        positions: 0-based positions to inline, ascending.
        begin_snapshot: the first snapshot id of a file that has one for each deletion; None where all belong to
            the snapshot that commits it.
        partial_max: the last snapshot id of such a file; None for others.
        new_snapshot: the snapshot id under which its newest deletions are written: that of the commit, if no other
            comes in between.
        end_snapshot: where the data file it belongs to has ended.
        replaces: the committed delete files whose place it takes. If it has snapshot ids they leave the catalog, as it
            holds all that they say; otherwise they end with the commit.
        format: `parquet` or `puffin`.
        encryption_key: as of WrittenFile.
    """

    data_file_id: int
    path: str | None = None
    delete_count: int = 0
    file_size_bytes: int = 0
    footer_size: int = 0
    positions: tuple[int, ...] = ()
    begin_snapshot: int | None = None
    partial_max: int | None = None
    new_snapshot: int | None = None
    end_snapshot: int | None = None
    replaces: tuple[DeleteFile, ...] = ()
    format: str = "parquet"
    encryption_key: str | None = field(default=None, repr=False)

    @property
    def row_group_count(self) -> int | None:
        """The row groups of a delete file; None of a deletion vector, which has none."""
        return None if self.format == VECTOR_FORMAT else -(-self.delete_count // DELETES_PER_ROW_GROUP)


@dataclass(frozen=True, slots=True)
class DataFile:
    """One row of `ducklake_data_file`, with its partition values.

    Attributes:
        path: as stored: relative to the table's path if `path_is_relative`.
        row_id_start: row id of the first row, for files that do not carry row ids; may be None.
        partial_max: highest snapshot id in a file merged of several snapshots, else None.
        partition_values: by key index.
        mapping: that of `mapping_id`.
    """

    data_file_id: int
    table_id: int
    begin_snapshot: int
    end_snapshot: int | None
    path: str
    path_is_relative: bool
    record_count: int
    file_size_bytes: int
    footer_size: int | None
    row_id_start: int | None
    partition_id: int | None = None
    encryption_key: str | None = field(default=None, repr=False)
    mapping_id: int | None = None
    partial_max: int | None = None
    partition_values: tuple[str | None, ...] = ()
    mapping: ColumnMapping | None = None


@dataclass(frozen=True, slots=True)
class DeleteFile:
    """One row of `ducklake_delete_file`."""

    delete_file_id: int
    data_file_id: int
    begin_snapshot: int
    end_snapshot: int | None
    path: str
    path_is_relative: bool
    format: str
    delete_count: int
    file_size_bytes: int
    footer_size: int | None
    encryption_key: str | None = field(default=None, repr=False)
    partial_max: int | None = None

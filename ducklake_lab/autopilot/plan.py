"""Pieces of maintenance that tables need, by the facts of their data files. Pure: no I/O."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from ducklake_lab.autopilot.policy import Policy
from ducklake_lab.model.entries import Table
from ducklake_lab.scan.file_stats import FileShape, Partition, TableShape

Step = Literal["flush", "merge", "rewrite", "expire", "clean up"]


@dataclass(frozen=True, slots=True)
class Piece:
    """Work of one commit.

    Attributes:
        table: the table; None for work on the whole lake.
        name: `schema.table`, or the lake's name.
        files: the data files to read.
        read_bytes: their bytes, the cost.
        files_after: the files that remain of them, about.
        rows: rows that leave the catalog or are left out as deleted; snapshots that expire; files that are deleted.
    """

    step: Step
    table: Table | None
    name: str
    files: tuple[FileShape, ...] = ()
    files_after: int = 0
    rows: int = 0

    @property
    def read_bytes(self) -> int:
        return sum(file.bytes for file in self.files)

    @property
    def file_ids(self) -> frozenset[int]:
        return frozenset(file.file_id for file in self.files)

    @property
    def amount(self) -> int:
        """The measure of its time: bytes to read, or rows, snapshots or files where it reads no file."""
        return self.read_bytes or self.rows

    @property
    def partitions(self) -> list[Partition]:
        """The partitions of its files, each once."""
        return list(dict.fromkeys(file.partition for file in self.files))

    @property
    def gain(self) -> str:
        """Describe the effect in a few words."""
        if self.step == "merge":
            return f"{len(self.files):,} files become {self.files_after:,}"
        if self.step == "rewrite":
            become = f", which become {self.files_after:,}" if self.files_after < len(self.files) else ""
            return f"{self.rows:,} deleted rows leave {len(self.files):,} files{become}"
        if self.step == "flush":
            return f"{self.rows:,} rows go from the catalog to Parquet"
        if self.step == "expire":
            return f"{self.rows:,} snapshots expire"
        return f"{self.rows:,} unneeded files are deleted"


@dataclass(frozen=True, slots=True)
class Need:
    """Facts of one table.

    Attributes:
        name: `schema.table`.
        target: bytes of a data file.
        settled: the newest snapshot whose files have settled.
        quiet: the newest snapshot that a partition may have files of.
        chosen: values of the partitions that the policy's condition chooses; None where it has none.
    """

    table: Table
    name: str
    shape: TableShape
    policy: Policy
    target: int
    settled: int
    quiet: int | None = None
    chosen: Collection[tuple[str | None, ...]] | None = None

    def files(self) -> list[FileShape]:
        """Return the files that may be written again."""
        files = [file for file in self.shape.files if file.begin_snapshot <= self.settled]
        if self.quiet is not None:
            loud = {file.partition[:2] for file in self.shape.files if file.begin_snapshot > self.quiet}
            files = [file for file in files if file.partition[:2] not in loud]
        if self.chosen is not None:
            keys = self.table.partition.partition_id if self.table.partition is not None else None
            files = [f for f in files if f.partition.partition_id == keys and f.partition.values in self.chosen]
        return files


def pieces_of(needs: Iterable[Need]) -> list[Piece]:
    """Return the pieces of tables: first those that save the most files and rows for the bytes they read."""
    found = [piece for need in needs for piece in (*flushes(need), *compactions(need))]
    return sorted(found, key=lambda piece: (_worth(piece), -piece.read_bytes), reverse=True)


def _worth(piece: Piece) -> float:
    saved = piece.rows / 1000 + len(piece.files) - piece.files_after
    return saved / (piece.read_bytes + 1_000_000)


def flushes(need: Need) -> Iterator[Piece]:
    """Yield the flush of a table with many inlined rows."""
    if need.shape.inlined_rows >= need.policy.inlined_rows:
        yield Piece("flush", need.table, need.name, rows=need.shape.inlined_rows)


def worn(need: Need) -> list[FileShape]:
    """Return the files with many deleted rows."""
    return [file for file in need.files() if file.deleted and file.deleted >= need.policy.deleted * max(file.rows, 1)]


def compactions(need: Need) -> Iterator[Piece]:
    """Yield rewrites and merges; files of one partition become one.

    Files with many deleted rows are rewritten, with small ones that join them or each other. Other small files are merged.
    """
    many, small = _alike(worn(need)), _alike(_small(need))
    rewritten, joined = [], set[int]()
    for key in {**many, **small}:
        joining = _joining(small.get(key, []), need)
        joined.update(file.file_id for file in joining)
        if group := [*{file.file_id: file for file in (*many.get(key, []), *joining)}.values()]:
            rewritten.append(group)
    for packed in _packed(rewritten, need.policy.piece_bytes):
        files = tuple(file for group in packed for file in group)
        yield Piece("rewrite", need.table, need.name, files, len(packed), sum(file.deleted for file in files))
    left = [[file for file in alike if file.file_id not in joined] for alike in small.values()]
    for packed in _packed(_mergeable(left, need), need.policy.piece_bytes):
        yield Piece("merge", need.table, need.name, tuple(file for group in packed for file in group), len(packed))


def mergeable(need: Need) -> list[list[FileShape]]:
    """Return small files without deleted rows that may become one: of one partition, each group up to the target size."""
    return _mergeable(_alike(_small(need)).values(), need)


def _mergeable(small: Iterable[list[FileShape]], need: Need) -> list[list[FileShape]]:
    whole = ([file for file in alike if not file.deleted] for alike in small)
    return [group for alike in whole for group in _up_to(alike, need.target) if len(group) > 1]


def _small(need: Need) -> list[FileShape]:
    return [file for file in need.files() if file.bytes < need.target * need.policy.small]


def _joining(small: Sequence[FileShape], need: Need) -> list[FileShape]:
    """Return small files that become one by a rewrite, as some have deleted rows, which a merge cannot take.

    They are the smallest ones, as many as pay: the largest of them is read again only where the rows of the others, and its
    deleted ones, are the policy's share of it. So no row is written again for a few others. There may be none.
    """
    by_size = sorted(small, key=lambda file: (file.rows, file.file_id))
    chosen: list[FileShape] = []
    before = size = 0
    for number, file in enumerate(by_size, 1):
        size += file.bytes
        if size > need.target:  # the next plan finds the others
            break
        if number > 1 and before + file.deleted >= need.policy.deleted * file.rows:
            chosen = by_size[:number]
        before += file.rows
    return _in_order(chosen) if any(file.deleted for file in chosen) else []


def _alike(files: Iterable[FileShape]) -> Mapping[object, list[FileShape]]:
    """Return files that may become one, oldest first."""
    found: defaultdict[object, list[FileShape]] = defaultdict(list)
    for file in files:
        found[file.partition].append(file)
    return {key: _in_order(alike) for key, alike in found.items()}


def _in_order(files: Iterable[FileShape]) -> list[FileShape]:
    return sorted(files, key=lambda file: (file.begin_snapshot, file.file_id))


def _up_to(files: Sequence[FileShape], target: int) -> Iterator[list[FileShape]]:
    """Cut files into groups, each closed as soon as it reaches the target size."""
    group: list[FileShape] = []
    size = 0
    for file in files:
        group.append(file)
        size += file.bytes
        if size >= target:
            yield group
            group, size = [], 0
    if group:
        yield group


def _packed(groups: Iterable[list[FileShape]], most: int) -> Iterator[list[list[FileShape]]]:
    """Put groups together as long as they have at most some bytes."""
    packed: list[list[FileShape]] = []
    size = 0
    for group in groups:
        own = sum(file.bytes for file in group)
        if packed and size + own > most:
            yield packed
            packed, size = [], 0
        packed.append(group)
        size += own
    if packed:
        yield packed

"""merge_adjacent_files: small files become larger ones, and every snapshot still reads the same (spec: maintenance).

The new file holds for each row the snapshot that inserted it, so the files it is made of leave the catalog.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from ducklake_lab.engine.placement import Engines
from ducklake_lab.maintenance.rewriting import rewrite_groups
from ducklake_lab.model.entries import Table
from ducklake_lab.model.staged import Compaction
from ducklake_lab.scan.rewritable_files import Candidate, columns_of, read_candidates
from ducklake_lab.transaction.transaction import Transaction


@dataclass(frozen=True, slots=True)
class MergeOptions:
    """Limits of merging files.

    Attributes:
        target_file_size: bytes; groups of files are closed as soon as they reach it.
        min_file_size, max_file_size: bytes; smaller files, and those of that size or larger, are left alone.
        max_compacted_files: new files to write at most.
        files: ids of the files to merge; all files by default.
    """

    target_file_size: int
    min_file_size: int = 0
    max_file_size: int | None = None
    max_compacted_files: int | None = None
    files: frozenset[int] | None = None


def merge_adjacent_files(
    transaction: Transaction, table: Table, options: MergeOptions, engines: Engines
) -> list[tuple[int, int]]:
    """Merges files of a table that follow each other; (files read, files written) for each new file."""
    lake, state = transaction.lake, transaction.base
    with lake.connect() as connection:
        files = read_candidates(lake, connection, state, table, options.files)
        candidates = [candidate for candidate in files if _qualifies(candidate, options)]
        groups = _groups(candidates, options)
        columns = [columns_of(connection, table, group[0]) for group in groups]
    row_ids = [_first_row_id(group) for group in groups]
    written = rewrite_groups(transaction, table, groups, columns, engines, row_ids=row_ids, keeps_snapshots=True)
    compactions = []
    for group, file in zip(groups, written, strict=True):
        sources = tuple(candidate.data_file for candidate in group)
        compactions.append(
            Compaction(
                "merge_adjacent",
                sources,
                file,
                partition_id=sources[0].partition_id,
                begin_snapshot=sources[0].begin_snapshot,
                partial_max=max(max(s.begin_snapshot, s.partial_max or 0) for s in sources),
                row_id_start=None if file is None or file.has_row_ids else sources[0].row_id_start,
            )
        )
    transaction.compact(table, compactions)
    return [(len(group), int(file is not None)) for group, file in zip(groups, written, strict=True)]


def _qualifies(candidate: Candidate, options: MergeOptions) -> bool:
    size = candidate.data_file.file_size_bytes
    limit = options.max_file_size if options.max_file_size is not None else options.target_file_size
    deleted = candidate.delete_files or candidate.inlined_deletes
    return options.min_file_size <= size < min(limit, options.target_file_size) and not deleted


def _groups(candidates: Sequence[Candidate], options: MergeOptions) -> list[list[Candidate]]:
    """Files to merge with each other: of one partition and one schema version, in order, up to the target size."""
    alike: dict[object, list[Candidate]] = defaultdict(list)
    for candidate in candidates:
        file = candidate.data_file
        alike[candidate.schema_version, file.partition_id, file.partition_values].append(candidate)
    groups: list[list[Candidate]] = []
    looked_at = 0
    for files in alike.values():
        start = 0
        while len(files) > 1 and start < len(files):
            if options.max_compacted_files is not None and looked_at >= options.max_compacted_files:
                return groups
            end, size = start, 0
            while end < len(files) and size < options.target_file_size:
                size += files[end].data_file.file_size_bytes
                end += 1
            if end - start > 1:
                groups.append(files[start:end])
            looked_at += 1
            start = end
    return groups


def _first_row_id(group: Sequence[Candidate]) -> int | None:
    """The first row id of files whose rows count on without a gap; None for others."""
    expected = first = group[0].data_file.row_id_start
    for candidate in group:
        file = candidate.data_file
        if file.row_id_start is None or file.row_id_start != expected:
            return None
        expected = file.row_id_start + file.record_count
    return first

"""rewrite_data_files: writes files with many deleted rows anew without those (spec: maintenance).

The old files end with the snapshot this makes; earlier ones go on reading them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection

from ducklake_lab.engine.placement import Engines
from ducklake_lab.maintenance.rewriting import rewrite_groups
from ducklake_lab.model.entries import Table
from ducklake_lab.model.staged import Compaction
from ducklake_lab.scan.rewritable_files import Candidate, columns_of, read_candidates
from ducklake_lab.transaction.transaction import Transaction

#: Share of deleted rows from which a file is rewritten.
DEFAULT_DELETE_THRESHOLD = 0.95


def rewrite_data_files(
    transaction: Transaction,
    table: Table,
    delete_threshold: float,
    engines: Engines,
    files: Collection[int] | None = None,
) -> list[tuple[int, int]]:
    """Rewrites files of a table, those of one partition into one; (files read, files written) for each new file.

    Args:
        delete_threshold: the share of deleted rows from which a file is rewritten.
        files: ids of files that are rewritten whatever they have deleted; by default the threshold chooses.
    """
    lake, state = transaction.lake, transaction.base
    alike: dict[object, list[Candidate]] = defaultdict(list)
    with lake.connect() as connection:
        for candidate in read_candidates(lake, connection, state, table, files):
            source = candidate.data_file
            rows, deleted = source.record_count, candidate.deleted_rows
            if files is not None or (deleted and (deleted / rows if rows else 0) >= delete_threshold):
                alike[candidate.schema_version, source.partition_id, source.partition_values].append(candidate)
        groups = list(alike.values())
        columns = [columns_of(connection, table, group[0]) for group in groups]
    row_ids = [None] * len(groups)
    written = rewrite_groups(transaction, table, groups, columns, engines, row_ids=row_ids, keeps_snapshots=False)
    compactions = []
    for group, file in zip(groups, written, strict=True):
        sources = tuple(candidate.data_file for candidate in group)
        compactions.append(Compaction("rewrite_delete", sources, file, partition_id=sources[0].partition_id))
    transaction.compact(table, compactions)
    return [(len(group), int(file is not None)) for group, file in zip(groups, written, strict=True)]

"""Footers and rows of files; each is read."""

from __future__ import annotations

from ducklake_lab.doctor import deep, deletion_files, mending
from ducklake_lab.doctor.check import Check, Repair

CHECKS = (
    Check(
        "data_file_unreadable", "contents", "error", "fails", "data file {id}",
        "It cannot be read: {reason}",
        probe=deep.unreadable_files, depth="deep", reason="the file may be the only copy of its rows; restore it from a backup",
    ),
    Check(
        "record_count_differs", "contents", "error", "wrong", "data file {id}",
        "The file has {rows} rows, and {record_count} in the catalog: counts from metadata are wrong.",
        probe=deep.wrong_counts, depth="deep",
        repair=Repair("take the count from the file, if no deletion is beyond it", mending.recount_data_file),
    ),
    Check(
        "rows_of_the_future", "contents", "error", "later", "data file {id}",
        "Its rows say snapshot {found}, which is beyond {bound}: they appear with that snapshot.",
        probe=deep.future_rows, depth="deep", reason="files are never changed; write its rows again with UPDATE",
    ),
    Check(
        "row_id_twice", "contents", "error", "wrong", "row ids",
        "{times} rows have ids that other rows of this snapshot have, {row_id} among them: changes of one would hit both.",
        probe=deep.repeated_row_ids, key=("table_id",), depth="deep",
        reason="both rows may be wanted; DELETE those that are there twice",
    ),
    Check(
        "row_id_too_large", "contents", "error", "later", "row ids",
        "A row has the id {row_id}, and the next one is {next_row_id}: new rows would take ids that are in use.",
        probe=deep.large_row_ids, key=("table_id",), depth="deep",
        repair=Repair("count on from the largest id", mending.raise_next_row_id_to),
    ),
    Check(
        "row_id_of_transaction", "contents", "info", "none", "data file {id}",
        "{rows} of its rows have ids from {row_id} on, which clients give to rows of an open transaction: others may get them too.",
        probe=deep.row_ids_of_transactions, depth="deep",
        reason="ids of rows stay; rows that are deleted and inserted again get ids of their own",
    ),
    Check(
        "rows_of_other_partition", "contents", "error", "wrong", "data file {id}",
        "Its partition keys are {keys}, and rows of it have {found}: readers that look for these leave the file out.",
        probe=deep.rows_of_other_partitions, depth="deep",
        reason="its rows belong to several partitions, or to another one; DELETE and INSERT them again",
    ),
    Check(
        "delete_count_differs", "contents", "error", "wrong", "delete file {id}",
        "The file deletes {rows} rows, and {delete_count} in the catalog: counts from metadata are wrong.",
        probe=deep.wrong_delete_counts, depth="deep",
        repair=Repair("count the deletions in the file", deletion_files.recount_id),
    ),
    Check(
        "deletions_outside", "contents", "error", "wrong", "delete file {id}",
        "{outside} of its deletions name positions that data file {data_file_id} lacks, or one twice.",
        probe=deep.deletions_outside, depth="deep",
        repair=Repair("write the delete file again without them", deletion_files.clean_delete_file),
    ),
)  # fmt: skip

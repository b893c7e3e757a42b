"""Facts about the files that a statement reads, for the placement."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from ducklake_lab.engine.placement import Facts, Purpose
from ducklake_lab.engine.rows import Rows
from ducklake_lab.file_paths import is_local, is_object
from ducklake_lab.scan.plan import ScanFile


def facts_of(
    files: Iterable[ScanFile],
    *,
    total: int | None = None,
    purpose: Purpose = "look",
    on_spark: bool = False,
    refusal: Callable[[], Exception | None] | None = None,
) -> Facts:
    """Returns the facts about the files left after pruning.

    Args:
        total: number of files before pruning; by default the same.
        on_spark, refusal: see `Facts`.
    """
    read = list(files)
    remote = [file.path for file in read if not is_local(file.path)]
    return Facts(
        bytes=sum(file.data_file.file_size_bytes for file in read),
        files=len(read),
        files_total=len(read) if total is None else total,
        purpose=purpose,
        is_fetched=bool(remote),
        is_far=not all(map(is_object, remote)),
        on_spark=on_spark,
        refusal=refusal,
    )


def facts_of_rows(
    loaded: Iterable[Rows], purpose: Purpose = "look", refusal: Callable[[], Exception | None] | None = None
) -> Facts:
    """Returns the facts about the sources of a statement."""
    read = list(loaded)
    return facts_of(
        (file for rows in read for file in rows.files),
        total=sum(rows.files_total for rows in read),
        purpose=purpose,
        on_spark=any(rows.is_on_spark for rows in read),
        refusal=refusal,
    )

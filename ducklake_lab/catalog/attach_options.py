"""The options of ATTACH."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from ducklake_lab.catalog import versions
from ducklake_lab.catalog.duckdb_files import checked_storage_version
from ducklake_lab.errors import UnsupportedFeatureError, UsageError

#: Refusal of deletion vectors in encrypted lakes, for which nobody has asked.
PLAIN_VECTORS = (
    "Deletion vectors of encrypted lakes are not encrypted: whoever has the files sees which rows are deleted. Leave "
    "write_deletion_vectors out, or set it to 'plain'."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class AttachOptions:
    """Options of attaching a lake; `Session.attach` describes each."""

    data_path: str | None = None
    read_only: bool = False
    snapshot_version: int | None = None
    snapshot_time: datetime | str | None = None
    encrypted: bool = False
    create_if_not_exists: bool = True
    create_folders: bool = False
    automatic_migration: bool = False
    ducklake_version: str | None = None
    storage_version: str | None = None
    override_data_path: bool = False
    exclusive: bool = False
    metadata_catalog: str | None = None
    metadata_schema: str | None = None
    data_inlining_row_limit: int | None = None
    write_deletion_vectors: bool | Literal["plain"] | None = None

    def __post_init__(self) -> None:
        if self.snapshot_version is not None and self.snapshot_time is not None:
            raise UsageError("Give snapshot_version or snapshot_time, not both.")
        if self.ducklake_version is not None:
            versions.written(self.ducklake_version)
        if self.storage_version is not None:
            checked_storage_version(self.storage_version)
        vectors = str(self.write_deletion_vectors).casefold()
        if self.write_deletion_vectors is not None and vectors not in ("true", "false", "plain"):
            raise UsageError(f'write_deletion_vectors is true, false or plain, not "{self.write_deletion_vectors}".')
        if self.encrypted and vectors == "true":
            raise UnsupportedFeatureError(PLAIN_VECTORS)

    @property
    def at(self) -> int | datetime | str | None:
        """The snapshot or time that is read; None for the newest."""
        return self.snapshot_version if self.snapshot_version is not None else self.snapshot_time

    @property
    def creates(self) -> bool:
        """Returns whether a lake is made where there is none."""
        return self.create_if_not_exists and not self.read_only and self.at is None

    def lake_options(self) -> dict[str, str]:
        """Options of the lake, as texts; a value that is set in the lake has precedence."""
        given = {
            "data_inlining_row_limit": self.data_inlining_row_limit,
            "write_deletion_vectors": self.write_deletion_vectors,
        }
        return {key: str(value).casefold() for key, value in given.items() if value is not None}

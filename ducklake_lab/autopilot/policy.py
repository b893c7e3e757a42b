"""The policy of maintenance: an option of a lake, a schema or a table, which other clients keep and ignore."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from datetime import datetime

from ducklake_lab.catalog.options import Options, Scope
from ducklake_lab.errors import CatalogError, UsageError, did_you_mean
from ducklake_lab.files.options import parse_bytes
from ducklake_lab.model.entries import Table

#: The option that holds the settings of one scope, as JSON.
KEY = "ducklake_lab_autopilot"
_HOURS = re.compile(r"([01]?\d|2[0-3])-([01]?\d|2[0-3])")


@dataclass(frozen=True, slots=True)
class Policy:
    """When files are maintained, and how much a run may do; tables override their schema, which overrides the lake.

    The lake's options `target_file_size`, `expire_older_than` and `delete_older_than` hold for it too.

    Attributes:
        enabled: `ducklake-lab autopilot` and its `--watch` maintain the table; a run that a user asks for always does.
        small: a file below this share of the target size is small; small files of a partition are merged.
        deleted: a file with at least this share of deleted rows is rewritten.
        inlined_rows: a table with at least that many rows in the catalog is flushed.
        settled: seconds; files that are younger wait, as their writers may still be at work.
        quiet: seconds; partitions to which a file was added since then wait.
        where: SQL that chooses partitions, a condition over the names of the partition keys: `day < current_date - 7`.
        hours: hours of the day in which a run may begin, in the session's time zone, the last one excluded: `22-6`.
        piece_bytes: bytes that one commit reads at most; a single file may have more.
        budget_bytes: bytes that one run reads at most; None for no limit.
        budget_seconds: seconds after which no further piece begins; None for no limit.
    """

    enabled: bool = False
    small: float = 0.25
    deleted: float = 0.2
    inlined_rows: int = 100
    settled: float = 60
    quiet: float = 0
    where: str | None = None
    hours: str | None = None
    piece_bytes: int = 1 << 30
    budget_bytes: int | None = None
    budget_seconds: float | None = None

    def with_settings(self, settings: Mapping[str, object]) -> Policy:
        """Return the policy with some settings replaced.

        Raises:
            UsageError: there is no such setting, or it takes no such value.
        """
        return replace(self, **{name: _checked(name, value) for name, value in settings.items()})  # type: ignore[arg-type]

    def is_open(self, now: datetime) -> bool:
        """Return whether a run may begin at a time of the session's zone."""
        if self.hours is None:
            return True
        start, end = map(int, self.hours.split("-"))
        return start <= now.hour < end if start < end else not end <= now.hour < start


#: Settings of the lake as a whole: a run has one budget, and its hours.
OF_A_RUN = ("hours", "budget_bytes", "budget_seconds")
#: The scope of the lake.
LAKE: Scope = (None, None)


def scopes_of(table: Table) -> list[Scope]:
    """Return the scopes whose settings hold for a table, the lake's own first."""
    return [LAKE, ("schema", table.schema_id), ("table", table.table_id)]


def policy_of(options: Options, scopes: Sequence[Scope] = (LAKE,), given: Mapping[str, object] | None = None) -> Policy:
    """Return the policy of some scopes; a later scope overrides an earlier one.

    Args:
        given: settings that come before all stored ones.

    Raises:
        CatalogError: a stored policy is damaged.
    """
    policy = Policy()
    for scope in scopes:
        text = options.values.get((*scope, KEY))
        if text is not None:
            policy = policy.with_settings(stored(text))
    return policy.with_settings(given or {})


def check(settings: Mapping[str, object], *, is_of_lake: bool) -> None:
    """Check settings that are to be stored; None takes one back.

    Raises:
        UsageError: there is no such setting, it takes no such value, or it belongs to the lake as a whole.
    """
    for name, value in settings.items():
        Policy().with_settings({name: getattr(Policy(), name, value) if value is None else value})
        if name in OF_A_RUN and not is_of_lake:
            raise UsageError(f"The setting {name} is for a run on the whole lake; set it without a table or schema.")


def stored(text: str) -> dict[str, object]:
    """Return the settings of one scope.

    Raises:
        CatalogError: they are damaged.
    """
    try:
        settings = json.loads(text)
        if not isinstance(settings, dict):
            raise UsageError("it is no object")
        Policy().with_settings(settings)
    except (ValueError, RecursionError, UsageError) as error:
        raise CatalogError(
            f"The option {KEY} of the lake is damaged ({error}); set it anew: %ducklake autopilot --set enabled=false."
        ) from error
    return settings


def written(settings: Mapping[str, object]) -> str | None:
    """Return the text of an option with these settings; None for none."""
    return json.dumps(dict(settings), sort_keys=True) if settings else None


def parsed(text: str) -> tuple[str, object]:
    """Return the name and value of `name=value`; `null` takes a setting back.

    Raises:
        UsageError: it has another form.
    """
    name, sign, value = text.partition("=")
    if not sign:
        raise UsageError(f'A setting of the policy is name=value, such as small=0.25, not "{text}".')
    if name.endswith("_bytes") and (size := parse_bytes(value)) is not None:
        return name, size
    try:
        return name, json.loads(value)
    except ValueError:
        return name, value


def _checked(name: str, value: object) -> object:
    known = {field.name: str(field.type) for field in fields(Policy)}
    if name not in known:
        raise UsageError(f'The policy has no setting "{name}".{did_you_mean(name, known)}')
    default = getattr(Policy(), name)
    if value is None and "None" in known[name]:
        return None
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if name == "enabled" and isinstance(value, bool):
        return value
    if name == "hours" and isinstance(value, str) and _HOURS.fullmatch(value):
        return value
    if name in ("small", "deleted") and is_number and 0 < float(str(value)) <= 1:
        return value
    if name == "where" and isinstance(value, str):
        return value
    if name in ("settled", "quiet", "budget_seconds") and is_number and 0 <= float(str(value)) < 1e12:
        return value
    if name in ("inlined_rows", "piece_bytes", "budget_bytes") and isinstance(value, int) and is_number and value > 0:
        return value
    raise UsageError(f"The setting {name} of the policy takes no {value!r}; its default is {default!r}.")

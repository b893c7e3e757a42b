"""Texts of options that choose what to revert."""

from __future__ import annotations

from ducklake_lab.errors import UsageError


def listed(text: str | None) -> list[str] | None:
    """Read names with commas between; None for None."""
    return None if text is None else [name.strip() for name in text.split(",") if name.strip()]


def row_ids(text: str | None) -> list[int] | None:
    """Read row ids with commas between; None for None.

    Raises:
        UsageError: one is no number.
    """
    found = listed(text)
    if found is not None and not all(one.isdecimal() for one in found):
        raise UsageError("--rows takes row ids with commas between, such as --rows 17,18.")
    return None if found is None else [int(one) for one in found]

"""Positions of rows in a data file."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

#: 0-based positions in one file, ascending, each once.
Positions = npt.NDArray[np.int64]


def ascending(positions: npt.NDArray[np.int64]) -> Positions:
    """The positions in order, each once: mostly as they are."""
    if np.all(positions[1:] > positions[:-1]):
        return positions
    # numpy's own unique() hashes integers, which takes ten times as long
    ordered = np.sort(positions, kind="stable")  # which merges runs that are in order
    distinct: Positions = ordered[np.append(True, ordered[1:] != ordered[:-1])]
    return distinct


def others(positions: Positions, rows: int) -> Positions:
    """Return all other positions in a file of so many rows; positions outside of the file are left out."""
    missing = np.ones(max(rows, 0), np.bool_)
    missing[positions[(positions >= 0) & (positions < rows)]] = False
    other_positions: Positions = np.flatnonzero(missing)
    return other_positions

"""Spec 1.0: the tables of 0.4 under a version that stays."""

from __future__ import annotations

from ducklake_lab.catalog.versions.version import Version

VERSION = Version("1.0", after=("0.4",), is_native=True, is_written=True)

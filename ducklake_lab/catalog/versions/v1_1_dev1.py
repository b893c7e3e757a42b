"""Spec 1.1-dev1: the form of builds of the reference before 1.1. It is read, never written.

Which of the tables and columns of 1.1 it has depends on the build, so none of them is read.
"""

from __future__ import annotations

from ducklake_lab.catalog.versions.version import Version

VERSION = Version("1.1-dev1", is_native=True, inlined_prefix="_ducklake_")

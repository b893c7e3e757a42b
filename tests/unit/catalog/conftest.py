"""Fixtures of tests of catalogs."""

from __future__ import annotations

from collections.abc import Callable

import pytest


@pytest.fixture
def place(quack: Callable[[str], str]) -> str:
    """`host:port` of a server with an empty file."""
    return quack("lake")

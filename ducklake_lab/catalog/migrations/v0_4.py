"""Spec 0.4 to 1.0: the same tables under a version that stays."""

from __future__ import annotations

from ducklake_lab.catalog.migrations.step import Step

STEP = Step("0.4", "1.0")

"""Conditions belong to the joins that take one: joins without parentheses parse like joins with them."""

from __future__ import annotations

import pytest

from ducklake_lab.sql import parse_query

_SAME = [
    ("a LEFT JOIN b CROSS JOIN c ON a.k = b.k", "a LEFT JOIN (b CROSS JOIN c) ON a.k = b.k"),
    ("a LEFT JOIN b NATURAL JOIN c USING (k)", "a LEFT JOIN (b NATURAL JOIN c) USING (k)"),
    ("a JOIN b POSITIONAL JOIN c ON a.k = b.k", "a JOIN (b POSITIONAL JOIN c) ON a.k = b.k"),
    ("a ASOF JOIN b CROSS JOIN c ON a.k >= b.k", "a ASOF JOIN (b CROSS JOIN c) ON a.k >= b.k"),
    ("a LEFT JOIN b JOIN c USING (k) USING (k)", "a LEFT JOIN (b JOIN c USING (k)) USING (k)"),
    ("a JOIN b JOIN c JOIN d ON 1 = 1 ON 2 = 2 ON 3 = 3", "a JOIN (b JOIN (c JOIN d ON 1 = 1) ON 2 = 2) ON 3 = 3"),
    ("a LEFT JOIN (SELECT 1 AS k) b CROSS JOIN c ON true", "a LEFT JOIN ((SELECT 1 AS k) b CROSS JOIN c) ON true"),
]


@pytest.mark.parametrize(("bare", "written_out"), _SAME)
def test_a_condition_belongs_to_the_join_that_takes_one(bare: str, written_out: str) -> None:
    assert parse_query(f"SELECT * FROM {bare}").tree == parse_query(f"SELECT * FROM {written_out}").tree

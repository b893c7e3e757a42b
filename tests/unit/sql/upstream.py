"""Methods of sqlglot that this package's dialect overrides, and the source of each, by which a change is seen.

`python -m tests.unit.sql.upstream` prints the table of the installed sqlglot.
"""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import sqlglot
from sqlglot.parsers.duckdb import DuckDBParser

from ducklake_lab.sql.dialect import DuckLakeSql

#: By method: the sqlglot whose source the override was compared with, and that source's digest.
CHECKED = {
    "_normalize_collate": ("30.30.0", "84fbc16c09e4c770"),
    "_parse_alias": ("30.30.0", "8e8444681de4bf43"),
    "_parse_bitwise": ("30.30.0", "8a40d01487401d32"),
    "_parse_bracket": ("30.30.0", "4ff8f89b99e88674"),
    "_parse_bracket_key_value": ("30.30.0", "bea8db58cb9d21e3"),
    "_parse_cte": ("30.30.0", "aa7a8517e09f4d58"),
    "_parse_cube_or_rollup": ("30.30.0", "175a1adc7b05a301"),
    "_parse_derived_table_values": ("30.30.0", "dd7c7073ffebe64f"),
    "_parse_disjunction": ("30.30.0", "6fcaae5342166655"),
    "_parse_expression": ("30.30.0", "918dcdeaa5b08ff5"),
    "_parse_extract": ("30.30.0", "45d97cd689db2dc2"),
    "_parse_grouping_set": ("30.30.0", "37e2bda279e80cfe"),
    "_parse_in": ("30.30.0", "d1e059ba7a33b26c"),
    "_parse_insert_table": ("30.30.0", "99511167e319f5d8"),
    "_parse_interval": ("30.30.0", "4b7d4338ec550ea4"),
    "_parse_is_rhs": ("30.30.0", "2062381e331e5ca6"),
    "_parse_join": ("30.30.0", "c5e6df5d38ea5895"),
    "_parse_lambda": ("30.30.0", "f9a4abf0f6b3221f"),
    "_parse_limit_options": ("30.30.0", "ea576e0c175b78ed"),
    "_parse_map": ("30.30.0", "2a7cb3bf38bac4f8"),
    "_parse_ordered": ("30.30.0", "d9f17f2349e227a7"),
    "_parse_pivot": ("30.30.0", "bdab2197fd29faef"),
    "_parse_pivot_in": ("30.30.0", "27d2806e54cc2655"),
    "_parse_primary": ("30.30.0", "971d0c3fc227bfec"),
    "_parse_projections": ("30.30.0", "21b759a8097c36b3"),
    "_parse_schema": ("30.30.0", "8991fafedf8f1fa1"),
    "_parse_star_ops": ("30.30.0", "03b1a824fa06457b"),
    "_parse_struct_types": ("30.30.0", "d9bc9694ef9cfafa"),
    "_parse_substring": ("30.30.0", "4b4cb862d0eb75ae"),
    "_parse_table_alias": ("30.30.0", "28d9d0a6fc06724b"),
    "_parse_table_part": ("30.30.0", "10742a93c1ebc73c"),
    "_parse_term": ("30.30.0", "1f1a18c487cd07d7"),
    "_parse_tilde": ("30.30.0", "3984e34524f83d92"),
    "_parse_trim": ("30.30.0", "60eda1fb35b89ca8"),
    "_parse_type": ("30.30.0", "fca4baac72f7bc5a"),
    "_parse_types": ("30.30.0", "311eaf90aae1c5a0"),
    "_parse_window": ("30.30.0", "380cfab9bd8a3bec"),
    "_parse_with": ("30.30.0", "92895d9acf69bcc5"),
}


def overridden() -> Iterator[str]:
    """Names of methods that the parser's own classes define, and sqlglot's as well."""
    for owner in DuckLakeSql.Parser.__mro__:
        if owner.__module__.startswith("ducklake_lab."):
            yield from (name for name, value in vars(owner).items() if callable(value) and hasattr(DuckDBParser, name))


def digest(name: str) -> str:
    """A digest of the sources of a method, in DuckDB's parser and the one that this extends."""
    found = [sources()[owner, name] for owner in ("DuckDBParser", "Parser") if (owner, name) in sources()]
    return hashlib.sha256("\n".join(found).encode()).hexdigest()[:16]


@cache
def sources() -> dict[tuple[str, str], str]:
    """Sources by class and method; read from files, as a compiled sqlglot has none in memory."""
    found = {}
    folder = Path(sqlglot.__file__).parent
    for path in (folder / "parser.py", folder / "parsers" / "duckdb.py"):
        text = path.read_text(encoding="utf-8")
        lines = text.splitlines()
        for owner in ast.parse(text).body:
            for method in owner.body if isinstance(owner, ast.ClassDef) else ():
                if isinstance(method, ast.FunctionDef):
                    # ast.get_source_segment divides the whole text into lines each time
                    source = "\n".join(lines[method.lineno - 1 : method.end_lineno])
                    found[owner.name, method.name] = source.lstrip()
    return found


if __name__ == "__main__":
    for method in sorted(set(overridden())):
        print(f'    "{method}": ("{sqlglot.__version__}", "{digest(method)}"),')

"""Names and texts as DuckDB's SQL takes and writes them."""

from __future__ import annotations

import re
from collections.abc import Sequence

from ducklake_lab.errors import UsageError
from ducklake_lab.version import SINCE_DUCKDB_2

#: duckdb_keywords() of DuckDB 1.5.
_KEYWORDS = frozenset(
    """
    abort absolute access action add admin after aggregate all also alter always analyse analyze and anti any
    array as asc asof assertion assignment asymmetric at attach attribute authorization backward before begin
    between bigint binary bit boolean both by cache call called cascade cascaded case cast catalog centuries
    century chain char character characteristics check checkpoint class close cluster coalesce collate collation
    column columns comment comments commit committed compression concurrently configuration conflict connection
    constraint constraints content continue conversion copy cost create cross csv cube current cursor cycle data
    database day days deallocate dec decade decades decimal declare default defaults deferrable deferred definer
    delete delimiter delimiters depends desc describe detach dictionary disable discard distinct do document
    domain double drop each else enable encoding encrypted end enum error escape event except exclude excluding
    exclusive execute exists explain export export_state extension extensions external extract false family fetch
    filter first float following for force foreign forward freeze from full function functions generated glob
    global grant granted group grouping grouping_id groups handler having header hold hour hours identity if
    ignore ilike immediate immutable implicit import in include including increment index indexes inherit inherits
    initially inline inner inout input insensitive insert install instead int integer intersect interval into
    invoker is isnull isolation join json key label lambda language large last lateral leading leakproof left
    level like limit listen load local location lock locked logged macro map mapping match matched materialized
    maxvalue merge method microsecond microseconds millennia millennium millisecond milliseconds minute minutes
    minvalue mode month months move name names national natural nchar new next no none not nothing notify notnull
    nowait null nullif nulls numeric object of off offset oids old on only operator option options or order
    ordinality others out outer over overlaps overlay overriding owned owner parallel parser partial partition
    partitioned passing password percent persistent pivot pivot_longer pivot_wider placing plans policy position
    positional pragma preceding precision prepare prepared preserve primary prior privileges procedural procedure
    program publication qualify quarter quarters quote range read real reassign recheck recursive ref references
    referencing refresh reindex relative release rename repeatable replace replica reset respect restart restrict
    returning returns revoke right role rollback rollup row rows rule sample savepoint schema schemas scope scroll
    search second seconds secret security select semi sequence sequences serializable server session set setof
    sets share show similar simple skip smallint snapshot some sorted source sql stable standalone start statement
    statistics stdin stdout storage stored strict strip struct subscription substring summarize symmetric sysid
    system table tables tablesample tablespace target temp template temporary text then ties time timestamp to
    trailing transaction transform treat trigger trim true truncate trusted try_cast type types unbounded
    uncommitted unencrypted union unique unknown unlisten unlogged unpack unpivot until update use user using
    vacuum valid validate validator value values varchar variable variadic varying verbose version view views
    virtual volatile week weeks when where whitespace window with within without work wrapper write xml
    xmlattributes xmlconcat xmlelement xmlexists xmlforest xmlnamespaces xmlparse xmlpi xmlroot xmlserialize
    xmltable year years yes zone
    """.split()
)
#: Further keywords of DuckDB 2.0.
_MORE_KEYWORDS = frozenset(
    """
    approx connect destroy disconnect distance exact nearest register resource resources secure similarity tuple
    """.split()
)
#: duckdb_keywords() of the DuckDB that is installed.
KEYWORDS = _KEYWORDS | _MORE_KEYWORDS if SINCE_DUCKDB_2 else _KEYWORDS

_PLAIN = re.compile(r"[a-z_][a-z0-9_]*", re.IGNORECASE | re.ASCII)


def quote_identifier(name: str) -> str:
    """Quote a name, as SQL takes any."""
    return '"' + name.replace('"', '""') + '"'


def quote_for_spark(name: str) -> str:
    """Quote a name for Spark SQL, and for Spark's columns by name."""
    return "`" + name.replace("`", "``") + "`"


def quote_text(text: str | None) -> str:
    """A text as a literal of SQL; NULL for None."""
    return "NULL" if text is None else "'" + text.replace("'", "''") + "'"


def quoted_if_needed(name: str) -> str:
    """A name as DuckDB writes it in types and in SQL: quoted where it is a keyword of any kind, or no plain word."""
    return name if _PLAIN.fullmatch(name) and name.lower() not in KEYWORDS else quote_identifier(name)


_PATH = re.compile(r'"(?:[^"]|"")*"(?:\."(?:[^"]|"")*")*')


def schema_path(parts: Sequence[str]) -> str:
    """The name that a schema goes by: its own, or of a nested one the quoted names from the outermost schema to it.

    A name of its own that begins with a quote is quoted too, so that it is no path.
    """
    is_own = len(parts) == 1 and not parts[0].startswith('"')
    return parts[0] if is_own else ".".join(map(quote_identifier, parts))


def path_parts(schema: str) -> tuple[str, ...]:
    """The inverse of `schema_path`."""
    return split_dotted(schema) if _PATH.fullmatch(schema) else (schema,)


def path_title(schema: str) -> str:
    """Title of a schema for people, from its path: `sales.europe` for a nested one."""
    parts = path_parts(schema)
    return parts[0] if len(parts) == 1 else ".".join(map(quoted_if_needed, parts))


def quoted_path(lake: str, schema: str, name: str) -> str:
    """Write the name of an entry for SQL, after the name of its schema."""
    return ".".join(map(quote_identifier, (lake, *path_parts(schema), name)))


def quoted_name(text: str) -> str:
    """Write a dotted name, whose parts may be quoted, with all its parts quoted.

    Raises:
        UsageError: it is no dotted name.
    """
    try:
        return ".".join(map(quote_identifier, split_dotted(text)))
    except ValueError:
        raise UsageError(f"{text} is no table name; write table, schema.table or lake.schema.table.") from None


def split_dotted(name: str) -> tuple[str, ...]:
    """Split a dotted name, whose parts may be quoted; a quoted dot divides nothing.

    Raises:
        ValueError: a part is empty, or a quote is not closed.
    """
    parts: list[str] = []
    current, quoted = "", False
    for index, character in enumerate(name):
        if character == '"':
            if quoted and name[index + 1 : index + 2] == '"':
                current += '"'
            quoted = not quoted
        elif character == "." and not quoted:
            parts.append(current)
            current = ""
        else:
            current += character
    parts.append(current)
    if quoted or not all(parts):
        raise ValueError(name)
    return tuple(parts)

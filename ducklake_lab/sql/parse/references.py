"""Finds the tables and table functions that a text names, from its tokens.

The planner binds whole statements. For statements that DuckDB runs in process, the positions of table names
suffice, and the rest of the text stays as written.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from sqlglot.tokens import Token, TokenType

from ducklake_lab.model.quoting import quote_text
from ducklake_lab.sql.operations import At, TableName, Written
from ducklake_lab.sql.parse.tokens import position, split

#: Words that begin a query in parentheses.
QUERY_WORDS = frozenset(
    ("SELECT", "WITH", "FROM", "VALUES", "TABLE", "PIVOT", "UNPIVOT", "DESCRIBE", "SUMMARIZE", "SHOW")
)
#: Words that begin a statement PIVOT or UNPIVOT.
PIVOTS = frozenset(("PIVOT", "UNPIVOT", "PIVOT_WIDER", "PIVOT_LONGER"))
#: Words after which a table is named, at the beginning of a query.
_SUBJECTS = PIVOTS | frozenset(("DESCRIBE", "DESC", "SUMMARIZE", "TABLE"))
#: Words that end a list of tables.
_ENDS = frozenset(
    "SELECT WHERE GROUP HAVING ORDER LIMIT OFFSET QUALIFY WINDOW SET UNION INTERSECT EXCEPT WHEN RETURNING".split()
)
#: Functions whose arguments may be separated by FROM.
_WITH_FROM = frozenset("EXTRACT SUBSTRING TRIM OVERLAY POSITION".split())
_STRINGS = (TokenType.STRING, TokenType.RAW_STRING, TokenType.HEREDOC_STRING, TokenType.NUMBER)
_OPEN = (TokenType.L_PAREN, TokenType.L_BRACKET, TokenType.L_BRACE)
_CLOSE = (TokenType.R_PAREN, TokenType.R_BRACKET, TokenType.R_BRACE)


@dataclass(frozen=True, slots=True)
class Reference:
    """A table, or a call of a table function, in a text.

    Attributes:
        first: index of its first token.
        last: index of its last token, including the arguments, and an AT (…) without an alias before it.
        arguments: tokens of each argument of a call; None for a table.
        implied_alias: its name if it has no alias; "" if an alias follows.
        moment: indexes of the first and last token of an AT (…) after the alias.
    """

    first: int
    last: int
    name: TableName
    at: At | None = None
    arguments: tuple[tuple[Token, ...], ...] | None = None
    implied_alias: str = ""
    moment: tuple[int, int] | None = None


def find_references(text: str, tokens: Sequence[Token]) -> list[Reference]:
    """Returns the tables and table functions in the FROM clauses of a statement in order, without CTEs.

    It also searches the arguments of calls: nested references follow their enclosing reference.
    """
    return _Finder(text, tokens).find()


def read_reference(text: str, tokens: Sequence[Token], index: int) -> Reference | None:
    """Returns the table or the call that begins at a token; None if no name stands there."""
    return _Finder(text, tokens).reference(index)


def word(token: Token | None) -> str:
    """Returns a token in upper case; "" if it is quoted."""
    if token is None or token.token_type is TokenType.IDENTIFIER or token.token_type in _STRINGS:
        return ""
    return " ".join(token.text.upper().split())


@dataclass(slots=True)
class _Level:
    """The state inside one pair of parentheses."""

    expecting: bool = False
    in_from: bool = False
    with_from: bool = False
    pivot: bool = False


class _Finder:
    def __init__(self, text: str, tokens: Sequence[Token]) -> None:
        self.text = text
        self.tokens = tokens

    def find(self) -> list[Reference]:
        ctes = cte_names(self.tokens)
        references: list[Reference] = []
        levels = [_Level()]
        start = True
        index = 0
        while index < len(self.tokens):
            token, level = self.tokens[index], levels[-1]
            name = word(token)
            subject = index > 0 and word(self.tokens[index - 1]) in _SUBJECTS
            if token.token_type in _OPEN:
                nested = level.expecting and token.token_type is TokenType.L_PAREN
                with_from = index > 0 and word(self.tokens[index - 1]) in _WITH_FROM
                levels.append(_Level(expecting=nested, in_from=nested, with_from=with_from))
                level.expecting = False
                start = token.token_type is TokenType.L_PAREN
                index += 1
                continue
            if token.token_type in _CLOSE:
                if len(levels) > 1:
                    levels.pop()
                levels[-1].expecting = start = False
                index += 1
                continue
            if (name == "FROM" and not level.with_from and not self._is_distinct_from(index)) or name.endswith("JOIN"):
                level.expecting = level.in_from = True
            elif name == "USING" and level.pivot:
                level.expecting = level.in_from = False
            elif name == "USING":
                # USING (columns) of a join names no table; USING (query) does.
                following = [word(t) for t in self.tokens[index + 1 : index + 3]]
                paren = index + 1 < len(self.tokens) and self.tokens[index + 1].token_type is TokenType.L_PAREN
                level.expecting = not paren or following[-1] in QUERY_WORDS
                level.in_from = level.in_from or level.expecting
            elif (start or self._begins_query(index, levels)) and name in _SUBJECTS and not self._is_call(index):
                level.expecting, level.in_from, level.pivot = True, False, "PIVOT" in name
            elif name.split(" ")[0] in _ENDS and token.token_type is not TokenType.IDENTIFIER:
                level.expecting = level.in_from = False
            elif token.token_type is TokenType.COMMA:
                level.expecting = level.in_from
            elif level.expecting and subject and name in PIVOTS and self._is_nameable(index + 1):
                level.pivot = True  # DESCRIBE PIVOT t
            elif level.expecting and subject and name == "TABLE" and self._is_nameable(index + 1):
                pass  # SUMMARIZE TABLE t
            elif level.expecting and name != "LATERAL":
                level.expecting = False
                reference = self.reference(index)
                if reference is not None and subject:
                    reference = replace(reference, implied_alias="")
                if reference is not None:
                    references.append(reference)
                    start = False
                    # also search the arguments of calls for queries
                    index = reference.last + 1 if reference.arguments is None else self._name_end(index) + 1
                    continue
            start = False
            index += 1
        return [r for r in references if not (r.name.schema is None and r.name.name.casefold() in ctes)]

    def _begins_query(self, index: int, levels: Sequence[_Level]) -> bool:
        """Returns whether a word may begin the query of CREATE … AS, or of INSERT."""
        verb = word(self.tokens[0])
        if len(levels) > 1 or index == 0 or levels[-1].in_from:
            return False
        return (verb == "CREATE" and word(self.tokens[index - 1]) == "AS") or (
            verb == "INSERT" and word(self.tokens[index]) in PIVOTS
        )

    def _is_distinct_from(self, index: int) -> bool:
        return index > 0 and word(self.tokens[index - 1]) == "DISTINCT" and index > 1

    def _is_call(self, index: int) -> bool:
        return (
            index + 1 < len(self.tokens)
            and self.tokens[index + 1].token_type is TokenType.L_PAREN
            and word(self.tokens[index]) not in ("PIVOT", "UNPIVOT", "SUMMARIZE", "DESCRIBE", "TABLE")
        )

    def _is_nameable(self, index: int) -> bool:
        return index < len(self.tokens) and _nameable(self.tokens[index])

    def _name_end(self, index: int) -> int:
        while index + 2 < len(self.tokens) and self.tokens[index + 1].token_type is TokenType.DOT:
            index += 2
        return index

    def reference_at(self, index: int) -> Reference | None:
        """Returns the name at a token; parentheses after it are not read as arguments."""
        first = self.tokens[index]
        if not _nameable(first):
            return None
        end = self._name_end(index)
        parts = [self.tokens[place].text for place in range(index, end + 1, 2)]
        return Reference(index, end, TableName.of(parts, *position(self.text, first.start)))

    def reference(self, index: int) -> Reference | None:
        first = self.tokens[index]
        if first.token_type in _STRINGS or not _nameable(first):
            return None
        end = self._name_end(index)
        parts = [self.tokens[place].text for place in range(index, end + 1, 2)]
        if any(self.tokens[place].token_type in _STRINGS for place in range(index, end + 1, 2)):
            return None
        name = TableName.of(parts, *position(self.text, first.start))
        if end + 1 < len(self.tokens) and self.tokens[end + 1].token_type is TokenType.L_PAREN:
            close = matching(self.tokens, end + 1)
            arguments = _arguments(self.tokens[end + 2 : close])
            return Reference(index, close, name, None, arguments, self._alias(close, parts[-1]))
        last, at = self._at(end)
        alias, moment = self._alias(last, parts[-1]), None
        if at is None and not alias:
            named = self._alias_end(last)
            close, at = self._at(named)
            moment = (named + 1, close) if at is not None else None
        return Reference(index, last, name, at, None, alias, moment)

    def _at(self, end: int) -> tuple[int, At | None]:
        """Returns the last token's index of a following `AT (VERSION => …)` or `VERSION AS OF …`, and its value."""
        moment = self._as_of(end)
        if moment is not None:
            return moment
        following = self.tokens[end + 1 : end + 5]
        if len(following) < 4 or word(following[0]) != "AT" or following[1].token_type is not TokenType.L_PAREN:
            return end, None
        close = matching(self.tokens, end + 2)
        inside = self.tokens[end + 5 : close]
        if word(following[2]) not in ("VERSION", "TIMESTAMP") or not inside:
            return end, None
        constant = self.text[inside[0].start : inside[-1].end + 1]
        if word(following[2]) == "VERSION":
            return close, At(version_sql=constant)
        return close, At(timestamp_sql=constant)

    def _as_of(self, end: int) -> tuple[int, At] | None:
        """Reads Spark's `[FOR] VERSION AS OF 3` and `[FOR] TIMESTAMP AS OF '…'`."""
        start = end + 1
        if start < len(self.tokens) and word(self.tokens[start]) == "FOR":
            start += 1
        words = [word(token) for token in self.tokens[start : start + 3]]
        if words[1:] != ["AS", "OF"] or start + 3 >= len(self.tokens):
            return None
        last = start + 3
        value = self.tokens[last]
        constant = self.text[value.start : value.end + 1]
        if value.token_type is TokenType.STRING:
            constant = quote_text(value.text)
        if words[0] in ("VERSION", "SYSTEM_VERSION"):
            return last, At(version_sql=constant)
        if words[0] not in ("TIMESTAMP", "SYSTEM_TIME"):
            return None
        if last + 1 < len(self.tokens) and self.tokens[last + 1].token_type is TokenType.L_PAREN:
            return matching(self.tokens, last + 1), At(timestamp_sql=constant)
        return last, At(timestamp_sql=constant)

    def _alias_end(self, last: int) -> int:
        """Returns the index of the last token of the alias after a name, with the names of its columns."""
        index = last + 2 if word(self.tokens[last + 1]) == "AS" else last + 1
        columns = index + 1
        if columns < len(self.tokens) and self.tokens[columns].token_type is TokenType.L_PAREN:
            return matching(self.tokens, columns)
        return index

    def _alias(self, last: int, name: str) -> str:
        """Returns the table's own name, or "" if an alias follows."""
        following = self.tokens[last + 1] if last + 1 < len(self.tokens) else None
        if following is None or word(following) in _NO_ALIASES or not _nameable(following):
            return name
        return ""


#: Keywords after a table that are no alias.
_NO_ALIASES = frozenset(
    "WHERE GROUP HAVING ORDER LIMIT OFFSET QUALIFY WINDOW SET UNION INTERSECT EXCEPT WHEN RETURNING ON USING JOIN LEFT "
    "RIGHT FULL INNER CROSS NATURAL SEMI ANTI ASOF POSITIONAL SELECT FROM TABLESAMPLE PIVOT UNPIVOT TO FOR".split()
) | {"GROUP BY", "ORDER BY"}


def _nameable(token: Token) -> bool:
    if token.token_type is TokenType.IDENTIFIER:
        return True
    return token.token_type not in _STRINGS and token.text.replace("_", "a").replace("$", "a").isalnum()


def matching(tokens: Sequence[Token], opening: int) -> int:
    """Returns the index of the parenthesis that closes the one at `opening`, or of the last token."""
    depth = 0
    for index in range(opening, len(tokens)):
        kind = tokens[index].token_type
        depth += (kind in _OPEN) - (kind in _CLOSE)
        if depth == 0:
            return index
    return len(tokens) - 1


def _arguments(tokens: Sequence[Token]) -> tuple[tuple[Token, ...], ...]:
    items: list[list[Token]] = [[]]
    depth = 0
    for token in tokens:
        depth += (token.token_type in _OPEN) - (token.token_type in _CLOSE)
        if token.token_type is TokenType.COMMA and depth == 0:
            items.append([])
        else:
            items[-1].append(token)
    return tuple(tuple(item) for item in items if item)


def cte_names(tokens: Sequence[Token]) -> set[str]:
    """Returns the folded names that WITH gives to queries anywhere in the statement."""
    names: set[str] = set()
    for index, token in enumerate(tokens):
        if index == 0 or not _nameable(token):
            continue
        before = tokens[index - 1]
        if word(before) not in ("WITH", "RECURSIVE") and before.token_type is not TokenType.COMMA:
            continue
        after = index + 1
        if after < len(tokens) and tokens[after].token_type is TokenType.L_PAREN:
            after = matching(tokens, after) + 1
        if after >= len(tokens) or word(tokens[after]) != "AS":
            continue
        after += 1
        while after < len(tokens) and word(tokens[after]) in ("NOT", "MATERIALIZED"):
            after += 1
        if after + 1 < len(tokens) and tokens[after].token_type is TokenType.L_PAREN:
            if word(tokens[after + 1]) in QUERY_WORDS or tokens[after + 1].token_type is TokenType.L_PAREN:
                names.add(token.text.casefold())
    return names


def splice(text: str, tokens: Sequence[Token], replacements: Sequence[tuple[int, int, str]]) -> str:
    """Returns the text of the tokens with replacements (first index, last index, text); indexes are inclusive.

    It ignores replacements inside an earlier one.
    """
    parts = [(tokens[first].start, tokens[last].end + 1, new) for first, last, new in replacements]
    return Written(text, tokens).whole(parts)


#: Words between a statement's verb and the name of its target.
_BEFORE_NAMES = frozenset(
    "INTO FROM TABLE VIEW SCHEMA MACRO FUNCTION TYPE SEQUENCE INDEX IF NOT EXISTS OR REPLACE TEMP TEMPORARY ONLY "
    "DATABASE RECURSIVE UNIQUE MATERIALIZED COLUMN IGNORE PERSISTENT UNLOGGED".split()
)


@dataclass(frozen=True, slots=True)
class Target:
    """The entry that a statement creates, changes or drops.

    Attributes:
        temporary: the statement contains TEMP or TEMPORARY.
        kind: TABLE, VIEW, SCHEMA, …, if the statement contains it.
    """

    reference: Reference
    temporary: bool = False
    kind: str = "TABLE"


def _is_dot(tokens: Sequence[Token], place: int) -> bool:
    return place < len(tokens) and tokens[place].token_type is TokenType.DOT


def words_of(text: str) -> list[str]:
    """Returns the words of one statement in upper case, "" for quoted ones."""
    return [word(token) for token in split(text)[0]]


def target_of(text: str) -> Target | None:
    """Returns the target of one statement, such as INSERT INTO or DROP VIEW; None if it has none."""
    tokens = split(text)[0]
    words = [word(token) for token in tokens]
    place, verb = 0, words[0] if words else ""
    if verb == "WITH":
        place = _after_ctes(tokens)
        verb = words[place] if place < len(words) else ""
    if verb == "COMMENT":
        place += 1
    if verb not in ("CREATE", "DROP", "ALTER", "COMMENT", "INSERT", "UPDATE", "DELETE", "MERGE", "TRUNCATE", "COPY"):
        return None
    temporary, kind = False, "TABLE"
    place += 1
    while place < len(tokens) and words[place] in _BEFORE_NAMES and not _is_dot(tokens, place + 1):
        temporary = temporary or words[place] in ("TEMP", "TEMPORARY")
        if words[place] in ("VIEW", "SCHEMA", "MACRO", "FUNCTION", "TYPE", "SEQUENCE", "INDEX", "DATABASE", "COLUMN"):
            kind = words[place]
        place += 1
    if kind == "INDEX" and verb == "CREATE":
        while place < len(tokens) and words[place] != "ON":
            place += 1
        place += 1
    if place >= len(tokens):
        return None
    reference = _Finder(text, tokens).reference_at(place)
    return Target(reference, temporary, kind) if reference is not None else None


def find_calls(text: str, tokens: Sequence[Token]) -> Iterator[tuple[int, int]]:
    """Yields the first and last token of each called name of a statement, with its qualifiers; every second one is a dot."""
    target = target_of(text)
    ctes = cte_names(tokens)
    for last, token in enumerate(tokens[:-1]):
        is_name = token.token_type in (TokenType.VAR, TokenType.IDENTIFIER)
        if not is_name or tokens[last + 1].token_type is not TokenType.L_PAREN:
            continue
        first = last
        while first > 1 and tokens[first - 1].token_type is TokenType.DOT and _nameable(tokens[first - 2]):
            first -= 2
        before = tokens[first - 1] if first else None
        if before is not None and (before.token_type in _ENDS_OF_NAMED or word(before) in _BEFORE_DEFINED):
            continue
        close = matching(tokens, last + 1)
        is_cte = token.text.casefold() in ctes and close + 1 < len(tokens) and word(tokens[close + 1]) == "AS"
        if not is_cte and (target is None or target.reference.first != first):
            yield first, last


#: Kinds of tokens after which a name with parentheses is an alias with columns, and words after which it is defined or a table.
_ENDS_OF_NAMED = (TokenType.VAR, TokenType.IDENTIFIER, TokenType.R_PAREN)
_BEFORE_DEFINED = ("AS", "WITH", "RECURSIVE", "REFERENCES")


def without_qualifier(text: str, catalog: str) -> str:
    """Returns one statement with the qualifiers `catalog.` and `catalog.main.` removed."""
    tokens = split(text)[0]
    replacements = []
    for index, token in enumerate(tokens):
        starts = index == 0 or tokens[index - 1].token_type is not TokenType.DOT
        if not starts or not _nameable(token) or token.text.casefold() != catalog.casefold():
            continue
        if index + 1 < len(tokens) and tokens[index + 1].token_type is TokenType.DOT:
            long = word(tokens[index + 2]) == "MAIN" and word(tokens[index + 3]) == "."
            replacements.append((index, index + (3 if long else 1), ""))
    return splice(text, tokens, replacements)


def _after_ctes(tokens: Sequence[Token]) -> int:
    """Returns the index of the statement's verb after WITH and its queries."""
    place = 1
    while place < len(tokens):
        if tokens[place].token_type is TokenType.L_PAREN:
            place = matching(tokens, place)
        elif word(tokens[place]) in ("SELECT", "INSERT", "UPDATE", "DELETE", "MERGE", "FROM", "VALUES"):
            return place
        place += 1
    return place

"""Queries made at random over three small tables, each from a number; see `test_random_queries`."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

#: Types of the columns of the tables.
TABLES: dict[str, dict[str, str]] = {
    "t": {
        "k": "INTEGER",
        "i": "INTEGER",
        "b": "BIGINT",
        "d": "DECIMAL(10,2)",
        "f": "DOUBLE",
        "s": "VARCHAR",
        "n": "VARCHAR",
        "o": "BOOLEAN",
        "day": "DATE",
        "ts": "TIMESTAMP",
        "l": "INTEGER[]",
    },
    "u": {"id": "INTEGER", "i": "INTEGER", "s": "VARCHAR", "w": "DOUBLE", "day": "DATE"},
    "g": {"id": "INTEGER", "s": "VARCHAR", "j": "INTEGER"},
}
ROWS = {
    "t": """
(0, 1, 10, 1.50, 2.5, 'abc', '12', true, '2024-01-31', '2024-02-29 12:34:56.789', [1, 2, NULL, 3]),
(1, -3, NULL, -2.25, 'nan', 'ABC déf', ' -7.5 ', false, '1969-12-31', '1970-01-01 00:00:00', []),
(2, NULL, 5, NULL, '-inf', '', NULL, NULL, NULL, NULL, NULL),
(3, 7, 70, 3.33, 0.0, 'a,b,c', '2024-02-29', true, '2000-02-29', '2000-02-29 23:59:59', [5]),
(4, 0, -1, 0.00, -0.75, ' b ', 'true', false, '1900-01-01', '1999-12-31 23:59:59.999999', [0, 0]),
(5, 1, 10, 1.50, 0.25, 'Abc', '5', true, '2024-01-31', '2024-02-29 12:34:56.789', [1, 2]),
(6, 7, 3, 9.99, 1e300, 'b', '7', NULL, '2024-02-01', '2024-03-01', [7])""",
    "u": """
(1, 1, 'abc', 0.5, '2024-01-31'), (2, 7, 'b', -1.0, '2000-02-29'), (3, NULL, NULL, NULL, NULL),
(4, -3, 'ABC', 2.5, '1969-12-31'), (5, 7, 'x', 'nan', '2024-05-05'), (6, 1, 'abc', 8, '2020-01-01')""",
    "g": "(1, '1', 10), (2, 'x', 20), (3, '22', 30), (4, NULL, 40), (5, 'y7', 50), (6, '-3', 60), (7, '300', 70)",
}
#: The column that distinguishes the rows of a table.
_KEYS = {"t": "k", "u": "id", "g": "id"}
_NUMBERS = ("INTEGER", "BIGINT", "DECIMAL(10,2)", "DOUBLE")


class Maker(random.Random):
    """Makes one query."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        #: (name, type) of the columns that FROM has, and those that tell its rows apart.
        self.columns: list[tuple[str, str]] = []
        self.keys: list[str] = []
        self.depth = 2

    def chance(self, part: float) -> bool:
        return self.random() < part

    # Values

    def column(self, *kinds: str) -> str | None:
        found = [name for name, kind in self.columns if kind in kinds]
        return self.choice(found) if found else None

    def deeper(self, make: Callable[[], str], leaf: str) -> str:
        if self.depth <= 0:
            return leaf
        self.depth -= 1
        try:
            return make()
        finally:
            self.depth += 1

    def number(self) -> str:
        leaf = self.column("INTEGER", "BIGINT") or str(self.randint(-3, 9))
        if self.chance(0.15):
            leaf = str(self.randint(-3, 9))

        def make() -> str:
            a = self.number()
            text = self.text()
            forms = [
                leaf,
                f"({a} + {self.randint(-2, 5)})",
                f"({a} - {leaf})",
                f"({leaf} * {self.randint(-2, 3)})",
                f"({a} % {self.randint(2, 5)})",
                f"abs({a})",
                f"coalesce({a}, {self.randint(0, 4)})",
                f"length({text})",
                f"CASE WHEN {self.condition()} THEN {a} ELSE {leaf} END",
                f"nullif({a}, {self.randint(0, 7)})",
                f"greatest({a}, {leaf})",
                f"TRY_CAST({text} AS INTEGER)",
            ]
            if (day := self.column("DATE")) is not None:
                forms += [f"year({day})", f"date_diff('day', {day}, DATE '2020-01-01')"]
            if (rows := self.column("INTEGER[]")) is not None:
                forms += [f"len({rows})", f"{rows}[1]", f"list_sum({rows})::BIGINT"]
            return self.choice(forms)

        return self.deeper(make, leaf)

    def real(self) -> str:
        leaf = self.column("DOUBLE", "DECIMAL(10,2)") or "1.5"

        def make() -> str:
            return self.choice(
                [leaf, f"({leaf} + {self.number()})", f"({leaf} / 2)", f"round({leaf}, 1)", f"({self.number()} / 4)"]
            )

        return self.deeper(make, leaf)

    def text(self) -> str:
        leaf = self.column("VARCHAR") or "'abc'"

        def make() -> str:
            a = self.text()
            forms = (
                f"upper({a});lower({a});({a} || 'x');substr({a}, 1, 2);trim({a});concat({a}, {leaf});replace({a}, 'b', 'z');"
                f"coalesce({a}, '-');CAST({self.number()} AS VARCHAR);left({a}, 1)"
            )
            return self.choice([leaf, *forms.split(";")])

        return self.deeper(make, leaf)

    def condition(self) -> str:
        leaf = f"{self.column('INTEGER', 'BIGINT') or '1'} {self.choice(['<', '>=', '=', '<>'])} {self.randint(-1, 7)}"

        def make() -> str:
            a, text = self.number(), self.text()
            forms = [
                leaf,
                f"{a} {self.choice(['<', '<=', '=', 'IS DISTINCT FROM'])} {self.number()}",
                f"{text} {self.choice(['<', '=', '>='])} {self.text()}",
                f"{text} LIKE '%{self.choice('abx')}%'",
                f"{a} IS NULL",
                f"{a} IN ({self.randint(0, 3)}, 7)",
                f"{a} BETWEEN {self.randint(-3, 1)} AND {self.randint(2, 9)}",
                f"({self.condition()} OR {self.condition()})",
                f"NOT ({self.condition()})",
                f"regexp_matches({text}, '[a-c]')",
                f"{a} {self.choice(['IN', 'NOT IN'])} (SELECT {self.choice(['i', 'id'])} FROM u)",
                f"{a} {self.choice(['<', '>=', '=', '<>'])} {self.choice(['ANY', 'ALL'])} (SELECT i FROM u WHERE i > {self.randint(-9, 3)})",
                f"EXISTS (SELECT 1 FROM g WHERE g.id = {leaf.split()[0]})",
                f"{a} > (SELECT min(j) FROM g)",
            ]
            if (truth := self.column("BOOLEAN")) is not None:
                forms += [truth, f"{truth} IS NOT TRUE"]
            return self.choice(forms)

        return self.deeper(make, leaf)

    def guarded(self) -> list[str]:
        """Conditions in pairs, where one keeps the other from failing."""
        name = self.column("VARCHAR")
        if name is None:
            return [self.condition()]
        return [
            f"regexp_full_match({name}, '-?[0-9]+')",
            f"CAST({name} AS INTEGER) {self.choice(['>', '<>'])} {self.randint(0, 30)}",
        ]

    def value(self) -> str:
        return self.choice([self.number, self.number, self.real, self.text, self.text, self.condition])()

    # Aggregates and windows

    def aggregate(self) -> str:
        key = ", ".join(self.keys)
        number, text = self.number(), self.text()
        found = self.choice(
            [
                "count(*)",
                f"count({number})",
                f"count(DISTINCT {text})",
                f"sum({number})",
                f"min({text})",
                f"max({number})",
                f"avg({number})",
                f"median({number})",
                f"list({number} ORDER BY {key})",
                f"string_agg({text}, '-' ORDER BY {key})",
                f"bool_or({self.condition()})",
                f"quantile_disc({number}, 0.3)",
                f"arg_max({text}, {key.split(',')[0]})" if len(self.keys) == 1 else "count(*)",
                f"histogram({number})",
            ]
        )
        return f"{found} FILTER (WHERE {self.condition()})" if self.chance(0.2) else found

    def window(self) -> str:
        key = ", ".join(self.keys)
        number, text = self.number(), self.text()
        whole = [f"sum({number})", f"count({text})", f"avg({number})", f"min({text})", f"max({number})", "count(*)"]
        whole += [
            f"median({number})",
            f"count(DISTINCT {number})",
            f"stddev({number})",
            f"bool_and({self.condition()})",
        ]
        ordered = ["row_number()", "rank()", f"lag({number})", f"lead({text}, 2)", f"first_value({text})", "ntile(2)"]
        ordered += [f"list({number})", f"string_agg({text}, '+')", f"last_value({number})", f"nth_value({number}, 2)"]
        parts = (
            f"PARTITION BY {self.choice([self.number(), self.text(), self.condition()])} " if self.chance(0.6) else ""
        )
        if self.chance(0.35):
            return f"{self.choice(whole)} OVER ({parts.strip()})"
        first = self.choice(
            ["", f"{self.number()} DESC, ", f"{self.text()} NULLS FIRST, ", f"{self.text()} COLLATE NOCASE, "]
        )
        frame = self.choice(
            [
                *["", "", ""],
                "ROWS BETWEEN 1 PRECEDING AND CURRENT ROW",
                "ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING",
                "GROUPS BETWEEN 1 PRECEDING AND 1 FOLLOWING",
                "ROWS BETWEEN 2 PRECEDING AND 1 FOLLOWING EXCLUDE CURRENT ROW",
            ]
        )
        return f"{self.choice([*whole, *ordered])} OVER ({parts}ORDER BY {first}{key} {frame}".rstrip() + ")"

    # FROM

    def table(self, alias: str) -> tuple[str, str]:
        """(text, table) of an item of FROM, whose columns are known then."""
        name = self.choice(["t", "t", "u", "g"])
        columns = TABLES[name]
        self.columns += [(f"{alias}.{column}", kind) for column, kind in columns.items()]
        self.keys.append(f"{alias}.{_KEYS[name]}")
        form = self.random()
        if form < 0.65:
            return f"{name} AS {alias}", name
        inner = Maker(self.getrandbits(32))
        inner.columns = list(columns.items())
        inner.keys = [_KEYS[name]]
        where = inner.where(0.7)
        if form < 0.8:
            return f"(SELECT * FROM {name}{where}) AS {alias}", name
        if form < 0.9:
            return f"(SELECT * FROM {name}{where} ORDER BY {_KEYS[name]} LIMIT {self.randint(1, 6)}) AS {alias}", name
        return f"(SELECT * FROM {name} UNION ALL SELECT * FROM {name} WHERE false) AS {alias}", name

    def joined(self) -> str:
        left, _ = self.table("a")
        if self.chance(0.4):
            return left
        before, keys = list(self.columns), list(self.keys)
        self.columns, self.keys = [], []
        right, _ = self.table("b")
        kind = self.choice(
            [
                "JOIN",
                "JOIN",
                "LEFT JOIN",
                "RIGHT JOIN",
                "FULL JOIN",
                "SEMI JOIN",
                "ANTI JOIN",
                "CROSS JOIN",
                ",",
                "ASOF LEFT JOIN",
            ]
        )
        if self.chance(0.15) and kind not in ("CROSS JOIN", ",", "SEMI JOIN", "ANTI JOIN"):
            # the condition comes after both joins
            inner, _ = self.table("c")
            right = self.choice([f"{right} CROSS JOIN {inner}", f"{right} JOIN {inner} ON true"])
            right = f"({right})" if self.chance(0.4) else right
        added = self.columns

        def of(columns: Sequence[tuple[str, str]], *kinds: str) -> str | None:
            found = [name for name, type_ in columns if type_ in kinds]
            return self.choice(found) if found else None

        on = [f"{of(before, 'INTEGER')} {self.choice(['=', '=', '=', '<'])} {of(added, 'INTEGER')}"]
        texts = of(before, "VARCHAR"), of(added, "VARCHAR")
        if self.chance(0.5):
            on.append(
                f"{self.choice(['lower', 'trim', 'upper'])}({texts[0]}) {self.choice(['=', '<>', '<'])} {self.choice(['lower', 'trim'])}({texts[1]})"
            )
        if self.chance(0.2):
            on.append(f"levenshtein({texts[0]}, {texts[1]}) < {self.randint(1, 4)}")
        if self.chance(0.3):
            on = on[1:] or on
        condition = " AND ".join(on)
        if kind == "ASOF LEFT JOIN":
            keys_on = f"{of(before, 'INTEGER')} = {of(added, 'INTEGER')} AND " if self.chance(0.5) else ""
            key = self.keys[0]
            condition = f"{keys_on}{of(before, 'INTEGER')} {self.choice(['>=', '>', '<=', '<'])} {key}"
        if kind in ("SEMI JOIN", "ANTI JOIN"):
            self.columns, self.keys = before, keys
        else:
            self.columns, self.keys = before + added, keys + self.keys
        if kind in ("CROSS JOIN", ","):
            return f"{left}{'' if kind == ',' else ' '}{kind} {right}"
        return f"{left} {kind} {right} ON {condition}"

    def reshaped(self) -> str:
        """PIVOT or UNPIVOT."""
        if self.chance(0.5):
            values = self.choice(["o IN (true, false)", "i IN (1, 7, -3)", "s IN ('abc', 'b')"])
            using = self.choice(["count(*)", "sum(b) AS x", "max(d), min(k)", "list(k ORDER BY k)"])
            if self.chance(0.3):
                return f"SELECT * FROM (PIVOT t ON {self.choice(['o', 'i', 's, o', 'year(day)'])} USING {using} GROUP BY {self.choice(['d', 'b, d'])})"
            return f"SELECT * FROM (SELECT k, i, o, s, b, d FROM t) PIVOT ({using} FOR {values} GROUP BY {self.choice(['d', 'b, d'])}) AS p"
        columns = self.choice(["i, b", "i AS 'x', k", "b, i"])
        nulls = self.choice(["", "INCLUDE NULLS "])
        if self.chance(0.4):
            pairs = self.choice(["(i, b), (k, k)", "(i, k) AS 'x', (k, i) AS 'y'"])
            return f"SELECT n, v, w, d FROM (SELECT i, b, d, k FROM t) UNPIVOT {nulls}((v, w) FOR n IN ({pairs}))"
        return f"SELECT n, v, d FROM (SELECT i, b, d, k FROM t) UNPIVOT {nulls}(v FOR n IN ({columns}))"

    # Queries

    def where(self, part: float) -> str:
        if not self.chance(part):
            return ""
        parts = self.guarded() if self.chance(0.25) else [self.condition()]
        if self.chance(0.3):
            parts.append(self.condition())
        return f" WHERE {' AND '.join(parts)}"

    def select(self) -> str:
        if self.chance(0.06):
            return self.reshaped()
        source = self.joined()
        where = self.where(0.6)
        form = self.random()
        if form < 0.3:
            keys = [self.choice([self.number, self.text, self.condition])() for _ in range(self.randint(0, 2))]
            items = [*keys, *(self.aggregate() for _ in range(self.randint(1, 3)))]
            group = f" GROUP BY {', '.join(map(str, range(1, len(keys) + 1)))}" if keys else ""
            having = f" HAVING count(*) > {self.randint(0, 1)}" if self.chance(0.3) else ""
            return f"SELECT {_listed(items)} FROM {source}{where}{group}{having}"
        if form < 0.6:
            items = [
                *self.keys,
                *(self.choice([self.window, self.window, self.value])() for _ in range(self.randint(1, 3))),
            ]
            qualify = (
                f" QUALIFY row_number() OVER (ORDER BY {', '.join(self.keys)}) < {self.randint(2, 9)}"
                if self.chance(0.15)
                else ""
            )
            return f"SELECT {_listed(items)} FROM {source}{where}{qualify}"
        distinct = "DISTINCT " if self.chance(0.2) else ""
        return f"SELECT {distinct}{_listed([self.value() for _ in range(self.randint(1, 4))])} FROM {source}{where}"

    def query(self) -> str:
        text = self.select()
        if self.chance(0.1):
            other = Maker(self.getrandbits(32))
            other.columns, other.keys = [(f"a.{name}", kind) for name, kind in TABLES["t"].items()], ["a.k"]
            self.columns, self.keys = list(other.columns), ["a.k"]
            kind = self.choice(["UNION ALL", "UNION", "EXCEPT", "INTERSECT"])
            makers = self.choice([("number", "text"), ("number",), ("text", "real")])
            sides = [_listed([getattr(one, make)() for make in makers]) for one in (self, other)]
            text = (
                f"SELECT {sides[0]} FROM t AS a{self.where(0.5)} {kind} SELECT {sides[1]} FROM t AS a{other.where(0.5)}"
            )
        elif self.chance(0.15):
            text = f"WITH q AS ({text}) SELECT {self.choice(['*', 'count(*)'])} FROM q"
        if self.chance(0.3):
            text += " ORDER BY ALL"
            if self.chance(0.5):
                text += f" LIMIT {self.randint(1, 5)}" if self.chance(0.6) else f" LIMIT {self.randint(0, 100)}%"
                text += f" OFFSET {self.randint(0, 3)}" if self.chance(0.2) else ""
        return text


def _listed(items: Sequence[str]) -> str:
    return ", ".join(f"{item} AS c{place}" for place, item in enumerate(items))


def made(seed: int) -> str:
    """The query of a number."""
    return Maker(seed).query()

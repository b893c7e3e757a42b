"""Join columns of USING and NATURAL."""

from __future__ import annotations

from sqlglot import exp

from ducklake_lab.errors import BindError, UnsupportedFeatureError, did_you_mean
from ducklake_lab.sql.notes import Output, Relation, notes
from ducklake_lab.sql.scope import Merged, Scope, bind_error, merged_column, without_column


def natural_columns(before: list[Relation], added: list[Relation]) -> list[exp.Identifier]:
    """Returns the columns that NATURAL joins on: those of both sides.

    Raises:
        BindError: the sides have no common column.
    """
    left = {output.name.casefold() for relation in before for output in relation.columns or ()}
    common = [
        exp.to_identifier(output.name, quoted=True)
        for relation in added
        for output in relation.columns or ()
        if output.name.casefold() in left
    ]
    if not common:
        raise BindError("NATURAL JOIN: both sides have no column name in common.")
    return common


def merge_using(
    using: list[exp.Identifier],
    before: list[Relation],
    added: list[Relation],
    scope: Scope,
    *,
    side: str,
    is_asof: bool,
) -> tuple[list[exp.Identifier], exp.Expr | None]:
    """Notes in the scope the meaning of the bare names of USING.

    Args:
        side: of the join: LEFT, RIGHT, FULL or "".

    Returns:
        The columns in the tables' spelling; and the condition that is equal to USING, if a relation to the left has a
        name without being joined by it.

    Raises:
        BindError: a side lacks a column, or has several with its name.
        UnsupportedFeatureError: two joins of one FROM have the same USING, over different tables.
    """
    names: list[exp.Identifier] = []
    conditions: list[exp.Expr] = []
    is_apart = False
    for identifier in using:
        folded = identifier.name.casefold()
        sides: list[Relation] = []
        values: list[exp.Expr] = []
        merged = scope.merged.get(folded)
        for relations in (before, added):
            holders = [relation for relation in relations if relation.find(folded) is not None]
            if not holders and not any(relation.columns is None for relation in relations):
                candidates = [output.name for relation in relations for output in relation.columns or ()]
                raise bind_error(
                    f"{without_column(identifier.name, relations)} to join by",
                    identifier,
                    did_you_mean(identifier.name, candidates),
                )
            joined = [relation for relation in holders if merged is not None and relation in merged.members]
            if len(holders) > 1 and not joined:
                raise bind_error(f'Column "{identifier.name}" in USING is ambiguous', identifier)
            is_apart = is_apart or 0 < len(joined) < len(holders)
            holders = joined or holders
            sides.extend(holders)
            if joined and merged is not None:
                values.append(merged.apart)
            elif holders and (output := holders[0].find(folded)) is not None:
                values.append(holders[0].column(output))
        if merged is not None and not set(merged.members) & set(sides):
            raise UnsupportedFeatureError(f'USING "{identifier.name}" for two joins of one FROM is not supported.')
        first = sides[0].find(folded) if sides else None
        if first is not None:
            members = [*(merged.members if merged else []), *sides]
            apart = _joined(values, side)
            # the matching row of an ASOF JOIN may have another value
            column = sides[0].column(first) if is_asof else _bare(apart, first)
            scope.merged[folded] = Merged(column, apart, tuple(dict.fromkeys(members)))
        if len(values) == 2:
            conditions.append(exp.EQ(this=values[0].copy(), expression=values[1].copy()))
        names.append(exp.to_identifier(first.name if first else identifier.name, quoted=True))
    return names, exp.and_(*conditions, copy=False) if is_apart and len(conditions) == len(names) else None


def _bare(apart: exp.Expr, first: Output) -> exp.Column:
    return merged_column(Output(apart.name, notes(apart).type) if isinstance(apart, exp.Column) else first)


def _joined(values: list[exp.Expr], side: str) -> exp.Expr:
    """Returns the value of a column of USING, of its values on both sides."""
    if side != "FULL" or len(values) < 2:
        return values[-1 if side == "RIGHT" else 0]
    both = exp.Anonymous(this="coalesce", expressions=[value.copy() for value in values])
    kinds = [notes(value).type for value in values]
    notes(both).set_type(kinds[0] if kinds[0] == kinds[1] else None)
    return both

"""Join columns of USING and NATURAL."""

from __future__ import annotations

from sqlglot import exp

from ducklake_lab.errors import BindError, UnsupportedFeatureError, did_you_mean
from ducklake_lab.sql.scope import Relation, Scope, bind_error, merged_column


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
    using: list[exp.Identifier], before: list[Relation], added: list[Relation], scope: Scope, *, is_asof: bool
) -> list[exp.Identifier]:
    """Returns the columns of USING in the tables' spelling; notes in the scope the meaning of their bare names.

    Raises:
        BindError: a side lacks a column, or has several with its name.
        UnsupportedFeatureError: two joins of one FROM have the same USING, over different tables.
    """
    names: list[exp.Identifier] = []
    for identifier in using:
        folded = identifier.name.casefold()
        sides: list[Relation] = []
        for side in (before, added):
            holders = [relation for relation in side if relation.find(folded) is not None]
            if not holders and not any(relation.columns is None for relation in side):
                candidates = [output.name for relation in side for output in relation.columns or ()]
                tables = " nor ".join(relation.name for relation in side)
                raise bind_error(
                    f'{tables} has no column "{identifier.name}" to join by',
                    identifier,
                    did_you_mean(identifier.name, candidates),
                )
            if len(holders) > 1 and not (folded in scope.merged and set(holders) <= set(scope.merged[folded][1])):
                raise bind_error(f'Column "{identifier.name}" in USING is ambiguous', identifier)
            sides.extend(holders)
        known = scope.merged.get(folded)
        if known is not None and not set(known[1]) & set(sides):
            raise UnsupportedFeatureError(f'USING "{identifier.name}" for two joins of one FROM is not supported.')
        first = sides[0].find(folded) if sides else None
        if first is not None:
            members = [*(known[1] if known else []), *sides]
            # the matching row of an ASOF JOIN may have another value
            column = sides[0].column(first) if is_asof else merged_column(first)
            scope.merged[folded] = (column, list(dict.fromkeys(members)))
        names.append(exp.to_identifier(first.name if first else identifier.name, quoted=True))
    return names

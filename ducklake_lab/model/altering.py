"""Changes of columns by ALTER TABLE: pure functions from a table to a changed table.

The catalog rows of nested columns match the reference: the row of an added, renamed or widened field has no
defaults.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from ducklake_lab.errors import BindError, ConstraintError, EntryExistsError, did_you_mean
from ducklake_lab.model.entries import Column, Table
from ducklake_lab.model.promotion import is_wider
from ducklake_lab.model.types import DataType


def existing(table: Table, name: str) -> Column:
    """Returns the top-level column with that name.

    Raises:
        BindError: the column does not exist.
    """
    column = table.column(name)
    if column is None:
        raise BindError(
            f'{table.name} does not have a column with name "{name}".'
            f"{did_you_mean(name, (column.name for column in table.columns))}"
        )
    return column


def path_to(table: Table, names: Sequence[str]) -> list[Column]:
    """Returns the columns along a dotted name, outermost first, through `element`, `key` and `value` too.

    Raises:
        BindError: a part of the name does not exist.
    """
    path = [existing(table, names[0])]
    for name in names[1:]:
        child = _child(path[-1], name)
        if child is None:
            hint = did_you_mean(name, (child.name for child in path[-1].children))
            raise BindError(f'{".".join(names)} does not exist: {path[-1].name} has no field "{name}".{hint}')
        path.append(child)
    return path


def _child(column: Column, name: str) -> Column | None:
    folded = name.casefold()
    return next((child for child in column.children if child.name.casefold() == folded), None)


def edited(
    columns: Sequence[Column], path: Sequence[Column], change: Callable[[Column], Column | None]
) -> tuple[Column, ...]:
    """Returns the columns with the last one of the path changed, or removed if `change` returns None."""
    result = []
    for column in columns:
        if column.column_id != path[0].column_id:
            result.append(column)
        elif len(path) > 1:
            result.append(replace(column, children=edited(column.children, path[1:], change)))
        elif (changed := change(column)) is not None:
            result.append(changed)
    return tuple(result)


def with_change(table: Table, path: Sequence[Column], change: Callable[[Column], Column | None]) -> Table:
    return replace(table, columns=edited(table.columns, path, change))


def add_field(table: Table, parents: Sequence[str], field: Column, *, if_not_exists: bool) -> Table:
    """Returns the table with a new field in one of its structs; `field` has free column ids."""
    path = path_to(table, parents)
    struct = path[-1]
    if struct.type != "struct":
        raise BindError(f"Fields can only be added to structs; {'.'.join(parents)} is a {struct.data_type.sql()}.")
    if _child(struct, field.name) is not None:
        if if_not_exists:
            return table
        raise EntryExistsError(f'{".".join(parents)} has a field "{field.name}" already.')
    bare = _bare_field(field)
    return with_change(table, path, lambda column: replace(column, children=(*column.children, bare)))


def _bare_field(field: Column) -> Column:
    kind = field.default_value_type or "literal"
    children = tuple(_bare_field(child) for child in field.children)
    return replace(field, nulls_allowed=False, default_value_type=kind, children=children)


def drop_column(table: Table, names: Sequence[str], *, if_exists: bool) -> Table:
    """Returns the table without a column or a struct field."""
    if if_exists and (table.column(names[0]) is None or not _exists(table, names)):
        return table
    path = path_to(table, names)
    column = path[-1]
    if len(path) == 1:
        if len(table.columns) == 1:
            raise BindError(f"{column.name} is the only column of {table.name}; a table needs one.")
    elif path[-2].type != "struct":
        raise BindError(f"{'.'.join(names)} is no field of a struct; only those can be dropped.")
    elif len(path[-2].children) == 1:
        raise BindError(f"{column.name} is the only field of {'.'.join(names[:-1])}; a struct needs one.")
    gone = {part.column_id for part in column.walk()}
    if table.partition is not None and any(field.column_id in gone for field in table.partition.fields):
        raise BindError(
            f"{column.name} is a partition key of {table.name}; use ALTER TABLE {table.name} RESET PARTITIONED BY first."
        )
    return with_change(table, path, lambda _: None)


def _exists(table: Table, names: Sequence[str]) -> bool:
    try:
        path_to(table, names)
    except BindError:
        return False
    return True


def rename_column(table: Table, names: Sequence[str], new_name: str, *, keeps_defaults: bool) -> Table:
    """Returns the table with a renamed column or struct field.

    Args:
        keeps_defaults: a renamed field keeps its defaults, as in lakes with DuckLake 1.1.
    """
    path = path_to(table, names)
    column = path[-1]
    if len(path) == 1:
        siblings: Sequence[Column] = table.columns
    elif path[-2].type == "struct":
        siblings = path[-2].children
    else:
        raise BindError(f"{'.'.join(names)} is no field of a struct; only those can be renamed.")
    folded = new_name.casefold()
    if any(other.name.casefold() == folded and other.column_id != column.column_id for other in siblings):
        where = table.name if len(path) == 1 else ".".join(names[:-1])
        raise EntryExistsError(f'{where} has a column "{new_name}" already.')
    if len(path) > 1:
        if new_name.casefold() == column.name.casefold():
            raise EntryExistsError(f'{".".join(names[:-1])} has a field "{new_name}" already.')
        return with_change(
            table,
            path,
            lambda field: replace(_field_rewritten(field, keeps_defaults), name=new_name, begin_snapshot=None),
        )
    return with_change(table, path, lambda old: replace(rewritten(old), name=new_name, begin_snapshot=None))


def rewritten(column: Column) -> Column:
    """Returns a top-level column for its new catalog row."""
    return replace(column, default_value_type=column.default_value_type or "literal")


def _field_rewritten(field: Column, keeps_defaults: bool) -> Column:
    """Returns a struct field for its new catalog row; before DuckLake 1.1 it loses its defaults."""
    if keeps_defaults:
        return replace(field, nulls_allowed=False)
    return replace(field, nulls_allowed=False, initial_default=None, default_value="NULL", default_value_type="")


def set_type(table: Table, name: str, target: DataType, next_id: int, *, keeps_defaults: bool) -> Table:
    """Returns the table with a new type for a column: a wider one, or a struct with other fields.

    Args:
        next_id: the first free column id.
        keeps_defaults: fields keep their defaults, as in lakes with DuckLake 1.1.

    Raises:
        BindError: the new type cannot hold every value of the old one.
    """
    column = existing(table, name)
    ids = iter(range(next_id, next_id + sum(1 for _ in target.walk()) + 1))
    if column.data_type == target:
        return table
    if not column.children:
        _check_wider(column, target)
        return with_change(table, [column], lambda old: replace(rewritten(old), type=target.name))
    return with_change(table, [column], lambda old: _evolved(old, target, lambda: next(ids), keeps_defaults))


def _check_wider(column: Column, target: DataType) -> None:
    if not is_wider(column.data_type, target):
        raise BindError(
            f"Cannot change type of column {column.name} from {column.data_type.sql()} to {target.sql()}: "
            "only widening type promotions are allowed."
        )


def _evolved(column: Column, target: DataType, next_id: Callable[[], int], keeps_defaults: bool) -> Column:
    """Returns a nested column with another type of its kind: matches fields by name, gives new ones new ids."""
    if not column.children:
        if column.data_type == target:
            return column
        _check_wider(column, target)
        return replace(_field_rewritten(column, keeps_defaults), type=target.name)
    if column.type != target.name:
        raise BindError(f"The type of {column.name} cannot be changed from {column.data_type.sql()} to {target.sql()}.")
    children = []
    for name, kind in target.children:
        child = _child(column, name)
        children.append(_new(name, kind, next_id) if child is None else _evolved(child, kind, next_id, keeps_defaults))
    return replace(column, children=tuple(sorted(children, key=lambda child: child.order)))


def _new(name: str, kind: DataType, next_id: Callable[[], int]) -> Column:
    built = Column.build(name, kind, next_id())
    for _ in range(sum(1 for _ in built.walk()) - 1):
        next_id()
    return built


def set_not_null(table: Table, name: str, *, required: bool) -> Table:
    """Returns the table with NOT NULL set or dropped for a column; does not check its rows."""
    column = existing(table, name)
    if column.nulls_allowed != required:
        state = "already has a" if required else "has no"
        raise ConstraintError(f"Column {column.name} of {table.name} {state} NOT NULL constraint.")
    return with_change(table, [column], lambda old: replace(rewritten(old), nulls_allowed=not required))

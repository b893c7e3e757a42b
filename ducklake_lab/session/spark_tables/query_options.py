"""Options that a query of Spark gives a table of a lake, as by `writeTo(…).option(…)`; and those of its streams."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ducklake_lab.errors import UnsupportedFeatureError, UsageError, did_you_mean
from ducklake_lab.session.spark_tables.parts import Parts, Request
from ducklake_lab.transaction.transaction import Transaction

#: Options that Spark reads by itself, in lower case.
_OF_SPARK = ("versionasof", "timestampasof")
#: Options of `format("ducklake")` that have another way here.
_OTHER_WAYS = {
    "readchangefeed": "read the table's own table .changes",
    "replacewhere": "use writeTo(…).overwrite(condition)",
    "overwriteschema": "use writeTo(…).createOrReplace()",
    "partitionby": "use partitionedBy(…)",
    "partitionoverwritemode": "use overwritePartitions(), or the setting spark.sql.sources.partitionOverwriteMode",
}
_NOTES: dict[str, Callable[[Transaction, str], None]] = {
    "author": lambda transaction, text: setattr(transaction, "author", text),
    "message": lambda transaction, text: setattr(transaction, "message", text),
    "usermetadata": lambda transaction, text: setattr(transaction, "extra_info", text),
}


def check_read(options: Mapping[str, str]) -> None:
    """Raises for options of a read that would not be followed.

    Raises:
        UnsupportedFeatureError: `format("ducklake")` has the option.
        UsageError: nobody has it.
    """
    for name in options:
        if name.casefold() not in _OF_SPARK:
            _refuse(name, ("versionAsOf", "timestampAsOf"))


def check_write(options: Mapping[str, str], mode: str) -> None:
    """Raises for options of a write that would not be followed, like `check_read`."""
    for name, value in options.items():
        folded, text = name.casefold(), value.casefold()
        if folded in _NOTES or (text == "false" and folded in ("mergeschema", "overwriteschema")):
            continue
        if folded == "partitionoverwritemode" and (mode != "overwrite" or text == "static"):
            continue
        _refuse(name, ("author", "message", "userMetadata"))


def note(options: Mapping[str, str], transaction: Transaction) -> None:
    """Notes the author, the message and the metadata of a write in its transaction."""
    for name, value in options.items():
        if name.casefold() in _NOTES:
            _NOTES[name.casefold()](transaction, value)


def stream(parts: Parts, request: Request) -> dict[str, str]:
    """Returns the options by which `format("ducklake")` finds the table of a stream, and makes the format known.

    Raises:
        UnsupportedFeatureError: a stream cannot find the lake or the table, or has an option that changes the columns.
    """
    from ducklake_lab import datasource

    token, lake = request["table"], parts.lake
    own = {name.casefold() for name in request["options"]}
    reason = None
    if "metadata" in token or "view" in token:
        reason = "it is a view or a metadata table"
    elif "readchangefeed" in own:
        reason = 'readChangeFeed gives it other columns; use format("ducklake")'
    elif lake.location.uri is None or lake.location.url.password:
        reason = 'its lake has a password or no URI; use format("ducklake") with all of the URI'
    elif lake.at is not None:
        reason = f"its lake is attached at snapshot {lake.at}"
    elif "." in token["name"]:
        reason = "its name has a dot"
    if reason is not None:
        raise UnsupportedFeatureError(
            f"A stream by the name of the table {token.get('name')} is not supported: {reason}."
        )
    datasource.register(parts.engine.users_session())
    return {
        "path": str(lake.location.uri),
        "table": f"{token['schema']}.{token['name']}",
        "data_path": lake.data_path,
    }


def _refuse(name: str, known: tuple[str, ...]) -> None:
    from ducklake_lab.datasource.options import option_names

    folded = name.casefold()
    if folded in _OTHER_WAYS:
        raise UnsupportedFeatureError(
            f"The option {name} is not supported by the name of a table: {_OTHER_WAYS[folded]}."
        )
    if folded in map(str.casefold, option_names()):
        raise UnsupportedFeatureError(
            f'The option {name} is not supported by the name of a table: use format("ducklake"), or leave it out.'
        )
    raise UsageError(f'Tables of a lake have no option "{name}".{did_you_mean(name, known)}')

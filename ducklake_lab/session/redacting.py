"""Removes secrets from errors: messages, causes and contexts.

A statement about secrets may contain a typo. Then any part may be the secret, and its errors show no text at all.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import wraps
from inspect import signature
from typing import Any, TypeVar

from ducklake_lab.duckdb import library as duckdb
from ducklake_lab.errors import ConstraintError, DuckLakeError, SqlError
from ducklake_lab.redaction import HIDDEN, hide, secrets_of
from ducklake_lab.session.names.argument_types import naming_misfits

_Function = TypeVar("_Function", bound=Callable[..., Any])

#: Signs of a secret in statements and URIs; most of those have several.
_SIGNS = re.compile(r"secret|passw|key_?id|session_?token|postgres|mysql|mariadb|//.*@", re.IGNORECASE | re.DOTALL)
#: Statements that cannot hold a secret.
_PLAIN = re.compile(
    r"\s*(?:select|from|with|values|insert|update|delete|merge|explain|describe|show|summarize|truncate|alter|drop|comment"
    r"|create\s+(?:or\s+replace\s+)?(?:temp\s+|temporary\s+)?(?:table|view|schema|macro))\b[^;]*;?\s*",
    re.IGNORECASE,
)
#: Values after a keyword of a secret, to a certain end: a blank may be part of the value.
_VALUES = re.compile(
    r"(?:secret|key_?id|token|passw\w*)[\s=:'\"]*"
    r"(.*?)(?=\s(?:host|port|user|dbname|db|database|socket|unix_socket|sslmode)\s*=|\)|$)|//[^/:@]*:([^/@]+)@",
    re.IGNORECASE | re.DOTALL,
)
#: Signs of a second statement, with a secret, after a missing semicolon.
_ANOTHER = re.compile(r"\b(?:create|replace|persistent)\s+secret\b|\battach\b|\bpassword\s*=", re.IGNORECASE)
_WORD = re.compile(r"\w{3,}")
#: Shortest part of a secret that a message must not contain, and most errors of a chain to check.
_SHORTEST, _LONGEST_CHAIN = 3, 20

#: The name of a secret, which messages may show.
_NAME = re.compile(r"\bsecret\s+(?:if\s+not\s+exists\s+)?\w+\s*\(", re.IGNORECASE)


def may_hold_secret(text: str) -> bool:
    """Returns whether SQL text or a URI may hold a secret, even with typos."""
    signs = _SIGNS.search(text) is not None
    return signs and (_PLAIN.fullmatch(text) is None or _ANOTHER.search(text) is not None)


def redacts(function: _Function) -> _Function:
    """Wraps a function with an argument `text` or `query` (SQL) or `uri`, so that its errors disclose no secret.

    An error for a text with a secret, or with a secret in its chain, is raised anew. The new error has no frames,
    causes or contexts of the first one, which show parts of the text.
    """
    names = list(signature(function).parameters)
    name = next(name for name in ("text", "query", "uri") if name in names)

    @wraps(function)
    def run(*args: object, **kwargs: object) -> Any:
        try:
            with naming_misfits(function, *args, **kwargs):
                return function(*args, **kwargs)
        except Exception as error:
            try:
                kwargs = signature(function).bind_partial(*args, **kwargs).arguments
            except TypeError:
                raise error from None  # it names the arguments, none of which it has read
            text = str(kwargs.get(name))
            if may_hold_secret(text):
                redacted = _redacted(error, text)
            elif (secrets := _given(text, kwargs)) or any(hide(said) != said for said in _chain(error)):
                redacted = _without(error, secrets)
            else:
                raise
        # the traceback keeps the frame of this function
        args, kwargs, text, secrets = (), {}, "", []
        raise redacted

    return run  # type: ignore[return-value]


def _redacted(error: Exception, text: str) -> DuckLakeError:
    message = str(error)
    parsed = isinstance(error, DuckLakeError) and not isinstance(error, SqlError | ConstraintError)
    if parsed and not _is_of_duckdb(error) and not _discloses(message, text):
        return type(error)(message)  # type: ignore[return-value]
    line, column = getattr(error, "line", None), getattr(error, "column", None)
    position = f" (line {line}, column {column})" if line is not None else ""
    kind = type(error) if isinstance(error, DuckLakeError) else SqlError
    return kind(f"The statement cannot be run{position}. Its text is not shown: it may hold a secret.")


def _given(text: str, kwargs: Mapping[str, object]) -> list[str]:
    """Returns the secrets in a text and in its parameter values."""
    params = kwargs.get("params")
    values = [value for value in params.values() if isinstance(value, str)] if isinstance(params, Mapping) else []
    return [secret for one in (text, *values) for secret in secrets_of(one)]


def _without(error: Exception, secrets: list[str]) -> DuckLakeError:
    """Returns the error with a message that contains no secret, nor a word of one."""
    if not isinstance(error, DuckLakeError):
        return SqlError(
            f"The statement cannot be run: {type(error).__name__}. Its text is not shown: it holds a secret."
        )
    message = str(error)
    for secret in secrets:
        for part in (secret, secret.replace("''", "'"), *sorted(_WORD.findall(secret), key=len, reverse=True)):
            if len(part) >= _SHORTEST:
                message = message.replace(part, HIDDEN)
    redacted = type(error)(message)
    if isinstance(error, SqlError) and isinstance(redacted, SqlError):
        redacted.line, redacted.column = error.line, error.column
    return redacted


def _chain(error: BaseException | None) -> list[str]:
    """Returns the messages of an error and of its causes."""
    texts: list[str] = []
    while error is not None and len(texts) < _LONGEST_CHAIN:
        texts.append(str(error))
        error = error.__cause__ or error.__context__
    return texts


def _is_of_duckdb(error: BaseException | None) -> bool:
    """Returns whether an error is, or was caused by, one of DuckDB's, whose text repeats the statement."""
    while error is not None:
        if isinstance(error, duckdb.Error):
            return True
        error = error.__cause__ or error.__context__
    return False


def _discloses(message: str, text: str) -> bool:
    values = [value for groups in _VALUES.findall(_NAME.sub("(", text)) for value in groups if value]
    parts = {part for value in values for part in (value, *_WORD.findall(value))}
    return any(part in message for part in parts)

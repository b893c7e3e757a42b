"""Errors of texts that hold a secret: they repeat nothing of it, and carry no error that does.

A statement about secrets may be misspelt, so that nothing says which part of it is one: its errors show none of the text.
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

_Function = TypeVar("_Function", bound=Callable[..., Any])

#: What statements and URIs with a secret have in them, most of them more than once.
_SIGNS = re.compile(r"secret|passw|key_?id|session_?token|postgres|mysql|mariadb|//.*@", re.IGNORECASE | re.DOTALL)
#: Statements that hold none.
_PLAIN = re.compile(
    r"\s*(?:select|from|with|values|insert|update|delete|merge|explain|describe|show|summarize|truncate|alter|drop|comment"
    r"|create\s+(?:or\s+replace\s+)?(?:temp\s+|temporary\s+)?(?:table|view|schema|macro))\b[^;]*;?\s*",
    re.IGNORECASE,
)
#: What comes after a word for a secret, up to where it certainly ends: a blank in it may be part of it.
_VALUES = re.compile(
    r"(?:secret|key_?id|token|passw\w*)[\s=:'\"]*"
    r"(.*?)(?=\s(?:host|port|user|dbname|db|database|socket|unix_socket|sslmode)\s*=|\)|$)|//[^/:@]*:([^/@]+)@",
    re.IGNORECASE | re.DOTALL,
)
#: What a statement that holds none does not have in it, unless a semicolon is missing before it.
_ANOTHER = re.compile(r"\b(?:create|replace|persistent)\s+secret\b|\battach\b|\bpassword\s*=", re.IGNORECASE)
_WORD = re.compile(r"\w{3,}")
#: Characters of a part of a secret that a message must not have, and errors in a chain.
_SHORTEST, _LONGEST_CHAIN = 3, 20

#: A secret's own name, which may be shown.
_NAME = re.compile(r"\bsecret\s+(?:if\s+not\s+exists\s+)?\w+\s*\(", re.IGNORECASE)


def may_hold_secret(text: str) -> bool:
    """Whether a text of SQL or a URI may hold a secret, even if it is misspelt."""
    signs = _SIGNS.search(text) is not None
    return signs and (_PLAIN.fullmatch(text) is None or _ANOTHER.search(text) is not None)


def redacts(function: _Function) -> _Function:
    """A function with an argument `text` of SQL, or `uri`: its errors disclose no secret.

    Errors that a text with a secret causes, or in whose chain one is, are raised anew: without the frames, causes and
    contexts of the first, which show parts of it.
    """
    names = list(signature(function).parameters)
    name = "text" if "text" in names else "uri"

    @wraps(function)
    def run(*args: object, **kwargs: object) -> Any:
        try:
            return function(*args, **kwargs)
        except Exception as error:
            kwargs = signature(function).bind_partial(*args, **kwargs).arguments
            text = str(kwargs.get(name))
            if may_hold_secret(text):
                redacted = _redacted(error, text)
            elif (secrets := _given(text, kwargs)) or any(hide(said) != said for said in _chain(error)):
                redacted = _without(error, secrets)
            else:
                raise
        # the frame of this function stays in the traceback
        args, kwargs, text, secrets = (), {}, "", []
        raise redacted

    return run  # type: ignore[return-value]


def _redacted(error: Exception, text: str) -> DuckLakeError:
    message = str(error)
    parsed = isinstance(error, DuckLakeError) and not isinstance(error, SqlError | ConstraintError)
    if parsed and not _is_of_duckdb(error) and not _discloses(message, text):
        return type(error)(message)  # type: ignore[return-value]
    line, column = getattr(error, "line", None), getattr(error, "column", None)
    place = f" (line {line}, column {column})" if line is not None else ""
    kind = type(error) if isinstance(error, DuckLakeError) else SqlError
    return kind(f"The statement cannot be run{place}. Its text is not shown: it may hold a secret.")


def _given(text: str, kwargs: Mapping[str, object]) -> list[str]:
    """The secrets in a text and in the values of its parameters."""
    params = kwargs.get("params")
    values = [value for value in params.values() if isinstance(value, str)] if isinstance(params, Mapping) else []
    return [secret for one in (text, *values) for secret in secrets_of(one)]


def _without(error: Exception, secrets: list[str]) -> DuckLakeError:
    """The error with a message that holds none of some secrets, nor a part of one."""
    if not isinstance(error, DuckLakeError):
        return SqlError(
            f"The statement cannot be run: {type(error).__name__}. Its text is not shown: it holds a secret."
        )
    message = str(error)
    for secret in secrets:
        for part in (secret, secret.replace("''", "'"), *sorted(_WORD.findall(secret), key=len, reverse=True)):
            if len(part) >= _SHORTEST:
                message = message.replace(part, HIDDEN)
    found = type(error)(message)
    if isinstance(error, SqlError) and isinstance(found, SqlError):
        found.line, found.column = error.line, error.column
    return found


def _chain(error: BaseException | None) -> list[str]:
    """The messages of an error and of what caused it."""
    found: list[str] = []
    while error is not None and len(found) < _LONGEST_CHAIN:
        found.append(str(error))
        error = error.__cause__ or error.__context__
    return found


def _is_of_duckdb(error: BaseException | None) -> bool:
    """Whether a message is, or was made of, one of DuckDB's, which quote the statement."""
    while error is not None:
        if isinstance(error, duckdb.Error):
            return True
        error = error.__cause__ or error.__context__
    return False


def _discloses(message: str, text: str) -> bool:
    values = [value for found in _VALUES.findall(_NAME.sub("(", text)) for value in found if value]
    parts = {part for value in values for part in (value, *_WORD.findall(value))}
    return any(part in message for part in parts)

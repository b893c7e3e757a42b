"""Secrets in texts, found by their form or place, and hidden.

A value is a secret by its form (the login and the query of a URL, a PEM block, the published form of a token, characters
that make no words), or by its place: it belongs to an option, header or member of a list that holds credentials.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

#: Text in place of a secret.
HIDDEN = "***"

#: Names of options, settings, headers and columns of credentials.
_NAME = (
    r"(?:secret|passw|passphrase|pwd|token|credential|signature|authori[sz]ation|cookie|key_?id|key_value"
    r"|(?:api|access|account|private|encryption|footer|shared|storage|master|signing|subscription)[_ -]?key"
    r"|(?<![a-z0-9])(?:sig|pass|auth|session_?id)(?![a-z0-9]))\w*"
)
_TEXT = r"(?:'(?:[^']|'')*(?:'|$)|\$\$.*?(?:\$\$|$)|\"[^\"\n]*(?:\"|$))"
#: Members of connection strings that may be seen.
_HARMLESS = frozenset(
    "host hostaddr hostname port user uid username dbname database db initialcatalog server datasource driver socket unix_socket "
    "sslmode connect_timeout application_name accountname endpointsuffix defaultendpointsprotocol blobendpoint region "
    "encrypt trustservercertificate schema catalog warehouse role type".split()
)
#: A value of type UUID is none, nor is a folder that is named by one without dashes.
_UUID = re.compile(
    r"(?<![0-9a-f])[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}(?![0-9a-f])|(?<=/)[0-9a-f]{32}(?=/)", re.IGNORECASE
)

#: Lengths of digests in hexadecimal. The longer ones may be keys of ciphers, too.
_DIGESTS = {32: True, 40: True, 56: False, 64: False, 96: False, 128: False}
_HEX = re.compile(r"(?<![0-9A-Za-z])(?:[0-9a-f]{32,128}|[0-9A-F]{32,128})(?![0-9A-Za-z])")
#: Identifiers: ULIDs of our days, and bytes in base32.
_IDS = re.compile(r"(?<![\w+=-])(?:01[0-9A-HJKMNP-TV-Z]{24}|[A-Z2-7]{16,64})(?![\w+=-])")
#: Text before a digest: a word of a sentence, or its kind.
_PROSE = re.compile(
    r"[A-Za-z]\w*[:,]? $|\b(?:sha[_-]?\d+|md5|\w*(?:hash|digest|checksum|etag|commit|revision))[^\w/]{1,5}$",
    re.IGNORECASE,
)
_OF_A_FILE = re.compile(r"/|[.][A-Za-z][A-Za-z0-9]{0,9}\b")
#: Text before a value that is a secret in any form.
_POSITION = re.compile(
    rf"(?:{_NAME}|\bkey|\bhmac|\bbearer|\botp)['\"]{{0,2}}[^\w/]{{0,5}}(?:(?:is|was|of)\b[^\w/]{{0,3}})?$",
    re.IGNORECASE,
)

#: Parts of every name above: a text without any has none of them.
_SIGNS = (
    "secret", "pass", "pwd", "token", "credential", "sig", "auth", "cookie", "key", "session",
    "bearer", "negotiate", "basic", "x-",
)  # fmt: skip
#: Longer texts hold no connection string.
_LONGEST_LIST = 4_000

#: Places of secrets; the group, or all of the match where it has none. The second ones need a sign.
_FORMS, _NAMED = (
    [re.compile(pattern, re.IGNORECASE | re.DOTALL) for pattern in patterns]
    for patterns in (
        (
            r"-----BEGIN [A-Z0-9 ]+-----.*?(?:-----END [A-Z0-9 ]+-----|$)",
            # a password may hold any character, an @ among them
            r"//(?!\$\{)([^\s'\"/?#@:]*:(?!\$\{)[^'\"\n]{0,1000})@(?=[^\s'\"@]*(?:[\s'\"]|$))",
            r"//(?!\$\{)([^\s'\"/?#@:]+)@",
            # queries, in which a doubled quote is one of a text in SQL
            r"\b[a-z][a-z0-9+.-]*:/{1,3}(?:''|[^\s'\"<>?#]){0,2000}[?#]((?:''|[^\s'\"<>])*=(?:''|[^\s'\"<>])*)",
            r"(?<![\w.])([\w%.~-]+=[^\s'\"&=]*(?:&[\w%.~-]+=[^\s'\"&]*)+)",
        ),
        (
            rf"{_NAME}[\"']{{0,2}}+\s*(?:=>|:=|<>|!=|==|=|:|like\b|in\s*\(|(?=['$]))\s*({_TEXT})",
            rf"{_NAME}=(?!\$\{{|[.…\s]|$)([^\s,;&'\")}}\]]+(?:\s(?!\w+=)[^\s,;&'\")}}\]]+)*)",
            rf"({_TEXT})(?:::\w+)?\s+as\s+\"?{_NAME}",
            r"\b(?:authorization|cookie|x-[\w-]+)\s*:\s*([^'\"\n]+)",
            rf"_key\s*\(\s*{_TEXT}\s*,\s*({_TEXT})",
            # the keys of encrypted Parquet
            r"\bencryption\w*\s*(?:=>|:=|=|:|)\s*(\{[^}]*(?:\}|$))",
            r"\b(?:bearer|negotiate|apikey)\s+(?=\S*\d|\S{16})([\w.~+/=-]{6,})",
            r"\bbasic\s+(?=\S*[\dA-Z=])([\w+/]{8,}=*)",
        ),
    )
)
#: Published forms of tokens.
_TOKENS = re.compile(
    r"\b(?:A[KGSI][IPT]A[A-Z0-9]{12,}|GOOG1[A-Z0-9]{20,}|AIza[\w-]{30,}|ya29\.[\w.-]+|gh[pousr]_\w{20,}|github_pat_\w{20,}"
    r"|glpat-[\w.-]{16,}|xox[a-z]-[\w-]{10,}|[spr]k_(?:live|test)_\w{10,}|sk-[\w-]{16,}|hf_\w{20,}|npm_\w{20,}|pypi-[\w-]{16,}"
    r"|SG\.[\w-]{10,}\.[\w-]{10,}|dapi[0-9a-f]{32}|hv[sbr]\.[\w-]{20,}|do[opr]_v1_\w{20,}|AGE-SECRET-KEY-1\w+"
    r"|eyJ[\w-]{8,}\.[\w-]+(?:\.[\w-]*)?|\d{8,10}:AA[\w-]{30,})"
)
_UNBROKEN = re.compile(r"[A-Za-z0-9]{20,}")
_RUN = re.compile(r"[A-Za-z0-9+/_=-]{24,}")
_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|[0-9]+")
#: Whole connection strings: members between semicolons or blanks.
_MEMBER = r"[A-Za-z_][\w .-]*?\s*=\s*(?:''.*?''|\"[^\"]*\"|\{[^}]*\}|'[^']*'|[^;']*?)"
_LISTED = re.compile(rf"(?:[\w+]+:)*\s*{_MEMBER}(?:;\s*{_MEMBER})+;?\s*", re.DOTALL)
_BLANK_MEMBER = r"\w+\s*=\s*(?:''.*?''|'[^']*'|\"[^\"]*\"|[^\s;']+)"
_SPACED = re.compile(rf"(?:[\w+]+:)*\s*{_BLANK_MEMBER}(?:\s+{_BLANK_MEMBER})+\s*", re.DOTALL)
_QUOTED = re.compile(r"'((?:[^']|'')*)'|\$\$(.*?)\$\$|\"([^\"\n]*)\"|/\*(.*?)\*/", re.DOTALL)


def hide(text: str) -> str:
    """The text with `***` for each secret in it; SQL, a URI, a message or a traceback."""
    shown, end = [], 0
    for start, stop in _spans(text):
        shown += [text[end:start], _hidden(text[start:stop])]
        end = stop
    return "".join([*shown, text[end:]]) if shown else text


def secrets_of(text: str) -> list[str]:
    """The secrets in a text, the longest first."""
    texts = {text[start:stop].strip("'\"$") for start, stop in _spans(text)}
    return sorted(texts - {"", HIDDEN}, key=len, reverse=True)


def _hidden(secret: str) -> str:
    """Return `***` for a secret; a literal stays a literal."""
    for mark in ("'", '"', "$$"):
        if secret.startswith(mark):
            return f"{mark}{HIDDEN}{mark if secret.endswith(mark) and len(secret) > len(mark) else ''}"
    return HIDDEN


def _spans(text: str) -> list[tuple[int, int]]:
    """The places of secrets, in order, none within another."""
    merged: list[tuple[int, int]] = []
    for start, stop in sorted(_found(text)):
        if start == stop:
            continue
        if merged and start < merged[-1][1]:
            merged[-1] = (merged[-1][0], max(stop, merged[-1][1]))
        else:
            merged.append((start, stop))
    return merged


def _found(text: str) -> Iterator[tuple[int, int]]:
    folded = text.casefold()
    for form in [*_FORMS, *(_NAMED if any(sign in folded for sign in _SIGNS) else ())]:
        for match in form.finditer(text):
            yield match.span(form.groups)
    for match in _TOKENS.finditer(text):
        yield match.span()
    for match in _QUOTED.finditer(text):
        place = match.lastindex or 1
        yield from _members(match[place] or "", match.start(place))
    yield from _members(text, 0)
    ids = [*(match.span() for match in _UUID.finditer(text)), *_identifiers(text)]
    for pattern, is_random in ((_UNBROKEN, _is_random), (_RUN, _is_encoded)):
        for match in pattern.finditer(text):
            if is_random(match[0]) and not any(start < match.end() and match.start() < stop for start, stop in ids):
                yield match.span()


def _identifiers(text: str) -> Iterator[tuple[int, int]]:
    """The places of digests and identifiers that stand where no secret does."""
    for match in (*_HEX.finditer(text), *_IDS.finditer(text)):
        before = text[max(match.start() - 60, 0) : match.start()]
        if _POSITION.search(before):
            continue
        known = _DIGESTS.get(len(match[0])) if match.re is _HEX else True
        if known or (
            known is not None and (before.endswith("/") or _OF_A_FILE.match(text, match.end()) or _PROSE.search(before))
        ):
            yield match.span()


def _members(text: str, at: int) -> Iterator[tuple[int, int]]:
    """The values in a connection string, without those that may be seen."""
    for whole, member in ((_LISTED, _MEMBER), (_SPACED, _BLANK_MEMBER)):
        if "=" in text and len(text) <= _LONGEST_LIST and whole.fullmatch(text) is not None:
            start = re.match(r"(?:[\w+]+:)*", text)
            for match in re.compile(rf"({member})(?=[;\s]|$)", re.DOTALL).finditer(text, start.end() if start else 0):
                name, _, value = match[1].partition("=")
                if re.sub(r"[\s_-]", "", name).casefold() not in _HARMLESS and not value.strip().startswith("${"):
                    place = match.start() + len(name) + 1
                    yield at + place, at + match.end()


def _is_random(text: str) -> bool:
    """Return whether unbroken letters and digits form neither words nor a time."""
    if text.isdigit() or len(set(text)) < 8:
        return False
    digits = len(re.findall(r"\d+", text))
    longest = 4.5 if len(text) >= 40 else 3.0
    return digits >= 3 or (not (text.isupper() or text.islower()) and _length_of_words(text) < longest)


def _is_encoded(text: str) -> bool:
    """Return whether it looks like bytes in base64: many short words of three kinds."""
    if text.startswith("/"):
        # no folder of a path is long
        return any(len(part) >= 14 and _is_encoded(part) for part in text.split("/"))
    kinds = (any(map(str.isupper, text)), any(map(str.islower, text)), any(map(str.isdigit, text)))
    return all(kinds) and len(set(text)) >= 12 and _length_of_words(text) < 3.2


def _length_of_words(text: str) -> float:
    words = _WORD.findall(text)
    return sum(map(len, words)) / len(words) if words else len(text)

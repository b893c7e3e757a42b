"""Uploads in parts to S3 that failed: pyarrow begins, fills and ends them, and has no call that aborts one.

Their parts are stored, unseen and paid for, until they are aborted. S3 is asked for them by plain requests, which carry
the signature of AWS (version 4).
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from urllib.parse import quote, unquote, urlsplit
from xml.etree import ElementTree

from pyarrow import fs

from ducklake_lab.errors import DataFileError
from ducklake_lab.filesystems import resolve
from ducklake_lab.object_access import Keys, access_to, keys_of

#: Seconds for which an answer is waited for.
_PATIENCE = 10
#: Bytes of an answer that are read.
_ANSWER = 4 << 20
_NOTHING = hashlib.sha256(b"").hexdigest()


def abort_uploads(path: str) -> None:
    """Abort the uploads in parts of a file that were begun and not ended, as far as that is possible.

    The path must be nobody else's, as an upload does not say who began it. Where the machine's role holds the credentials
    nothing is done, as only pyarrow has them; nothing is raised if the store refuses.
    """
    with suppress(OSError, HTTPException, ElementTree.ParseError, DataFileError):
        target = _s3_object(path)
        if target is not None:
            answer = target.ask("GET", {"uploads": "", "prefix": target.key, "encoding-type": "url"}, of_bucket=True)
            for upload in _uploads_of(answer, target.key):
                target.ask("DELETE", {"uploadId": upload})


@dataclass(frozen=True)
class S3Object:
    """Object of S3, and how requests about it are sent.

    Attributes:
        base: path of the bucket in URLs, e.g. `/bucket`; empty where the host names it.
    """

    scheme: str
    host: str
    base: str
    key: str
    region: str
    keys: Keys

    def ask(self, method: str, query: Mapping[str, str], *, of_bucket: bool = False) -> bytes:
        """Send a request about the object, or its bucket, and return the body of the answer; empty if it is refused."""
        url = _quoted(self.base + ("" if of_bucket else f"/{self.key}"), "/") or "/"
        headers = signed(method, self.host, url, query, self.region, self.keys, datetime.now(UTC))
        kind = HTTPSConnection if self.scheme == "https" else HTTPConnection
        connection = kind(self.host, timeout=_PATIENCE)
        try:
            connection.request(method, f"{url}?{_query(query)}", headers=headers)
            answer = connection.getresponse()
            body = answer.read(_ANSWER)
            return body if answer.status == 200 else b""
        finally:
            connection.close()


def _s3_object(path: str) -> S3Object | None:
    """Return where requests about a file go; None if it is not of S3, or the credentials are not known."""
    filesystem, _, inner = resolve(path)
    if not isinstance(filesystem, fs.S3FileSystem):
        return None
    access = access_to(f"s3://{inner}")
    keys = keys_of(access)
    if keys is None:
        return None
    bucket, _, key = inner.partition("/")
    region = filesystem.region
    domain = f"s3.{region}.amazonaws.com{'.cn' if region.startswith('cn-') else ''}"
    server = urlsplit(access.endpoint or f"https://{domain}")
    # a certificate holds for one label before its domain
    if access.by_host or (access.endpoint is None and "." not in bucket):
        return S3Object(server.scheme, f"{bucket}.{server.netloc}", "", key, region, keys)
    return S3Object(server.scheme, server.netloc, f"/{bucket}", key, region, keys)


def _uploads_of(answer: bytes, key: str) -> list[str]:
    """Return the ids of the uploads of exactly a key in S3's list of uploads."""
    listed = ElementTree.fromstring(answer) if answer else ()
    entries = [{part.tag.rpartition("}")[2]: part.text or "" for part in entry} for entry in listed]
    return [
        upload["UploadId"] for upload in entries if unquote(upload.get("Key", "")) == key and upload.get("UploadId")
    ]


def signed(
    method: str, host: str, url: str, query: Mapping[str, str], region: str, keys: Keys, now: datetime
) -> dict[str, str]:
    """Return the headers of a request without a body, with its signature.

    Args:
        url: the quoted path.
    """
    moment = now.strftime("%Y%m%dT%H%M%SZ")
    headers = {"host": host, "x-amz-content-sha256": _NOTHING, "x-amz-date": moment}
    if keys.token is not None:
        headers["x-amz-security-token"] = keys.token
    names = ";".join(headers)
    lines = "".join(f"{name}:{value}\n" for name, value in headers.items())
    request = "\n".join((method, url, _query(query), lines, names, _NOTHING))
    scope = f"{moment[:8]}/{region}/s3/aws4_request"
    text = "\n".join(("AWS4-HMAC-SHA256", moment, scope, hashlib.sha256(request.encode()).hexdigest()))
    secret = f"AWS4{keys.secret}".encode()
    for part in scope.split("/"):
        secret = hmac.digest(secret, part.encode(), "sha256")
    signature = hmac.digest(secret, text.encode(), "sha256").hex()
    said = f"Credential={keys.key_id}/{scope}, SignedHeaders={names}, Signature={signature}"
    return {**headers, "authorization": f"AWS4-HMAC-SHA256 {said}"}


def _query(query: Mapping[str, str]) -> str:
    return "&".join(f"{_quoted(name)}={_quoted(value)}" for name, value in sorted(query.items()))


def _quoted(text: str, safe: str = "") -> str:
    return quote(text, safe=f"{safe}-_.~")

"""Texts of many kinds that hold no secret, though some look random: each drawn anew."""

from __future__ import annotations

import random
import string
import uuid
from collections.abc import Callable

_HEX = "0123456789abcdef"
_CROCKFORD = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
_BASE32 = string.ascii_uppercase + "234567"
_LOWER = string.ascii_lowercase

#: `{letters:count}` stands for random letters of an alphabet below.
_ALPHABETS = {
    "hex": _HEX,
    "HEX": _HEX.upper(),
    "ulid": _CROCKFORD,
    "base32": _BASE32,
    "low": _LOWER,
    "digit": string.digits,
}
_FORMS = {
    "Git's hash in a sentence": "reverts commit {hex:40}",
    "Git's hash alone": "{hex:40}",
    "Git's hash, quoted": "INSERT INTO loads VALUES ('{hex:40}')",
    "Git's hash as an author wrote it": "load of {hex:40}, again",
    "short Git hash": "built from {hex:7}",
    "Git's hash in a URL": "https://git.example/org/repo/commit/{hex:40}",
    "SHA-256 of a commit": "merge {hex:64}",
    "MD5 of a file": "md5 {hex:32} of part.csv",
    "MD5 alone": "{hex:32}",
    "MD5 in capitals": "checksum {HEX:32}",
    "SHA-256 with its name": "sha256:{hex:64}",
    "SHA-256 of a column": "SELECT * FROM f WHERE sha256 = '{hex:64}'",
    "SHA-512 in a sentence": "the file has the digest {hex:128}",
    "image": "registry.example/org/image@sha256:{hex:64}",
    "ETag": "etag {hex:32}-{digit:1}",
    "file named by its hash": "/data/{hex:64}.parquet",
    "folder named by its hash": "s3://bucket/{hex:64}/part-0.parquet",
    "folder named by a UUID without dashes": "s3://bucket/{hex:32}/part-0.parquet",
    "ULID": "run 01{ulid:24} is done",
    "ULID alone": "01{ulid:24}",
    "ULID in a path": "s3://bucket/runs/01{ulid:24}/x.parquet",
    "base32": "{base32:26}",
    "base32 in a sentence": "object {base32:32} is stored",
    "base32, long": "INSERT INTO t VALUES ('{base32:52}')",
    "S3 path": "s3://{low:9}/year=2026/month=01/day=31/part-{digit:4}.parquet",
    "S3 path of words": "s3://bucket/Data/Exports2026/CustomerOrdersV2/{digit:4}Q1/region=EU/f1.csv",
    "GCS path": "gs://{low:9}-eu/{low:7}/{low:5}_{digit:8}.parquet",
    "path of temporary files": "/dev/shm/up_3b9{low:5}/pbinS/0.parquet",
    "path of a test": "/tmp/bt_upload/test_types_{low:6}_first1_second0/p/0.parquet",
    "path on Windows": "C:\\Users\\{low:6}\\Documents\\Report 2026.xlsx",
    "ARN": "arn:aws:s3:::{low:12}/2026/key.parquet",
    "German word": "Donaudampfschifffahrtselektrizitätenhauptbetriebswerkbauunterbeamtengesellschaft {digit:2}",
    "German words": "Rindfleischetikettierungsüberwachungsaufgabenübertragungsgesetz und Straßenbahnfahrplanauskunft{digit:4}",
    "capitals": "KRAFTFAHRZEUGHAFTPFLICHTVERSICHERUNG{digit:2}",
    "SQL": "SELECT {low:8}_id, sum(l_extendedprice*(1-l_discount)) FROM lineitem WHERE l_shipdate>=DATE'1994-01-01'",
    "SQL of a change": "UPDATE {low:7} SET name = '{low:5}' WHERE order_key = {digit:6} AND keys > 3",
    "long number": "{digit:38}",
    "digits behind the point": "3.{digit:34}",
    "name of a job": "job_{digit:8}_0830_attempt2",
    "time": "2026-01-01T12:34:56.{digit:6}+00:00",
    "compact time": "2026{digit:4}T123456Z",
    "IBAN": "DE{digit:20}",
    "version": "v1.2.{digit:1}-rc4+build{digit:4}",
}  # fmt: skip


def _drawn(r: random.Random, form: str) -> str:
    out = ""
    while form:
        before, found, rest = form.partition("{")
        out += before
        if not found:
            break
        name, _, form = rest.partition("}")
        letters, _, count = name.partition(":")
        out += "".join(r.choices(_ALPHABETS[letters], k=int(count)))
    return out


def _formed(form: str) -> Callable[[random.Random], str]:
    return lambda r: _drawn(r, form)


def _uuid(form: str) -> Callable[[random.Random], str]:
    return lambda r: form.replace("{}", str(uuid.UUID(int=r.getrandbits(128), version=4)))


HARMLESS: dict[str, Callable[[random.Random], str]] = {name: _formed(form) for name, form in _FORMS.items()} | {
    "UUID": _uuid("{}"),
    "UUID in SQL": _uuid("DELETE FROM t WHERE id = '{}'"),
    "data file": _uuid("ducklake-{}.parquet"),
    "part file": _uuid("part-00000-{}-c000.snappy.parquet"),
}

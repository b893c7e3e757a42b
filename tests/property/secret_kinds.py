"""Secrets of many kinds as they stand in statements: each drawn anew, with what of it must never be seen."""

from __future__ import annotations

import base64
import json
import random
import string
from collections.abc import Callable
from dataclasses import dataclass

_LOWER = string.ascii_lowercase + string.digits
_UPPER = string.ascii_uppercase + string.digits
_ALL = string.ascii_letters + string.digits
_BASE64 = _ALL + "+/"
_URL64 = _ALL + "-_"
_HEX = "0123456789abcdef"
#: People's passwords: a word that no rule knows.
_PASSWORD = string.ascii_lowercase


@dataclass(frozen=True, slots=True)
class Drawn:
    """A text with a secret in it, and the parts of the text that are secret."""

    text: str
    secrets: tuple[str, ...]


_Maker = Callable[[random.Random], Drawn]
KINDS: dict[str, _Maker] = {}


def _some(r: random.Random, letters: str, count: int) -> str:
    return "".join(r.choices(letters, k=count))


def _kind(name: str, form: str, letters: str, count: int) -> None:
    def make(r: random.Random) -> Drawn:
        secret = _some(r, letters, count)
        return Drawn(form.replace("{}", secret), (secret,))

    KINDS[name] = make


for _name, _form, _letters, _count in (
    ("AWS key id", "AKIA{}", _UPPER, 16),
    ("AWS temporary key id", "ASIA{}", _UPPER, 16),
    ("AWS secret key", "{}", _BASE64, 40),
    ("AWS session token", "FwoGZXIvYXdzE{}==", _BASE64, 180),
    ("presigned S3", "https://b.s3.amazonaws.com/a/x.parquet?X-Amz-Credential=me%2Fs3&X-Amz-Signature={}", _HEX, 64),
    ("S3 security token", "https://b.s3.amazonaws.com/x.csv?X-Amz-Security-Token={}&X-Amz-Expires=60", _ALL, 90),
    ("signed GCS", "https://storage.googleapis.com/b/x.parquet?X-Goog-Algorithm=GOOG4&X-Goog-Signature={}", _HEX, 256),
    ("GCS key", "GOOG1E{}", _UPPER, 55),
    ("Azure SAS", "https://a.blob.core.windows.net/c/x.parquet?sv=2024-01-01&sp=r&sig={}%3D", _ALL, 43),
    ("Azure SAS alone", "?sv=2024-01-01&sp=r&sig={}%3D", _PASSWORD, 9),
    ("Azure account", "DefaultEndpointsProtocol=https;AccountName=a;AccountKey={}==;EndpointSuffix=core.windows.net", _BASE64, 86),
    ("Azure account, short", "AccountName=a;AccountKey={}", _PASSWORD, 9),
    ("s3 keys in a URL", "s3://b/x.parquet?s3_access_key_id=me&s3_secret_access_key={}", _PASSWORD, 12),
    ("login in a URL", "https://ann:{}@host.example/x.csv", _PASSWORD, 9),
    ("login with marks", "ftp://ann:p@{}/x@host.example/x.csv", _PASSWORD, 9),
    ("token as login", "https://{}@git.example/x.csv", _PASSWORD, 9),
    ("PostgreSQL URL", "postgresql://me:{}@db.example:5432/x", _PASSWORD, 9),
    ("PostgreSQL words", "host=db.example user=me password={} dbname=x", _PASSWORD, 9),
    ("PostgreSQL words, quoted", "host=db.example password='my {}' dbname=x", _PASSWORD, 9),
    ("MySQL words", "host=db.example user=me passwd={} database=x", _PASSWORD, 9),
    ("words of another name", "host=db.example user=me kennwort={}", _PASSWORD, 9),
    ("ODBC", "Driver={SQL};Server=db.example;Uid=me;Pwd={}", _PASSWORD, 9),
    ("ODBC of another name", "Server=db.example;Uid=me;Kennwort={};Database=x", _PASSWORD, 9),
    ("token in a URL", "https://api.example/rows.csv?token={}", _PASSWORD, 9),
    ("access token in a URL", "https://api.example/rows.csv?year=2026&access_token={}", _PASSWORD, 9),
    ("access token behind a fragment", "https://api.example/rows.csv#access_token={}", _PASSWORD, 9),
    ("API key in a URL", "https://api.example/rows.csv?api_key={}", _PASSWORD, 9),
    ("any word in a URL", "https://api.example/rows.csv?k={}", _PASSWORD, 9),
    ("Bearer", "Bearer {}", _URL64, 40),
    ("Authorization", "Authorization: Bearer {}", _PASSWORD, 12),
    ("Cookie", "Cookie: session={}", _PASSWORD, 12),
    ("GitHub", "ghp_{}", _ALL, 36),
    ("GitHub, fine-grained", "github_pat_{}", _ALL, 59),
    ("GitLab", "glpat-{}", _URL64, 20),
    ("Slack", "xoxb-123456789012-{}", _ALL, 24),
    ("Slack's hook", "https://hooks.slack.com/services/T0AB12CD3/B0EF45GH6/{}", _ALL, 24),
    ("Stripe", "sk_live_{}", _ALL, 24),
    ("a model's key", "sk-proj-{}", _ALL, 40),
    ("Hugging Face", "hf_{}", string.ascii_letters, 34),
    ("npm", "npm_{}", _ALL, 36),
    ("PyPI", "pypi-AgEIcHlwaS5vcmc{}", _URL64, 80),
    ("SendGrid", "SG.abcdefghijklmnopqrstuv.{}", _URL64, 43),
    ("Google API", "AIza{}", _URL64, 35),
    ("Databricks", "dapi{}", _HEX, 32),
    ("Vault", "hvs.{}", _ALL, 24),
    ("DigitalOcean", "dop_v1_{}", _HEX, 64),
    ("age", "AGE-SECRET-KEY-1{}", _UPPER, 58),
    ("bytes in hex", "{}", _HEX, 64),
    ("webhook secret", "whsec_{}", _BASE64, 44),
):  # fmt: skip
    _kind(_name, _form, _letters, _count)


def _lines(r: random.Random, count: int) -> tuple[str, ...]:
    return tuple(_some(r, _BASE64, 64) for _ in range(count))


def _pem(name: str) -> _Maker:
    def make(r: random.Random) -> Drawn:
        lines = _lines(r, 5)
        return Drawn(f"-----BEGIN {name}-----\n" + "\n".join(lines) + f"\n-----END {name}-----", lines)

    return make


def _account(r: random.Random) -> Drawn:
    lines = _lines(r, 3)
    key = "-----BEGIN PRIVATE KEY-----\n" + "\n".join(lines) + "\n-----END PRIVATE KEY-----\n"
    return Drawn(json.dumps({"type": "service_account", "private_key": key}), lines)


def _jwt(r: random.Random) -> Drawn:
    head, body = (
        base64.urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=")
        for part in ({"alg": "HS256"}, {"sub": _some(r, _LOWER, 12)})
    )
    signature = _some(r, _URL64, 43)
    return Drawn(f"{head}.{body}.{signature}", (body, signature))


def _basic(r: random.Random) -> Drawn:
    secret = base64.b64encode(f"ann:{_some(r, _PASSWORD, 9)}".encode()).decode()
    return Drawn(f"Basic {secret}", (secret.rstrip("="),))


KINDS |= {
    "RSA key": _pem("RSA PRIVATE KEY"),
    "OpenSSH key": _pem("OPENSSH PRIVATE KEY"),
    "service account": _account,
    "JWT": _jwt,
    "Basic": _basic,
}

#: Where a password, which has no form, is known by the name of what takes it.
NAMED = (
    "read_parquet({file}, encryption_config = {{footer_key_value: {secret}}})",
    "read_csv({file}, api_key := {secret})",
    "read_csv({file}, access_token => {secret})",
    "(SELECT 1 WHERE 'password' <> {secret})",
    "(SELECT {secret} AS password)",
    "(SELECT MAP {{'Authorization': {secret}, 'X-Api-Key': {secret}}})",
    "(SELECT {{'client_secret': {secret}}})",
)

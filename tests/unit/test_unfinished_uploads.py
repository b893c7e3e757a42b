from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from ducklake_lab.object_access import Keys, S3Access, grant, keys_of, revoke
from ducklake_lab.unfinished_uploads import _quoted, _s3_object, signed

KEYS = Keys("AKIDEXAMPLE", "t0p-s3cret", None)


@pytest.mark.parametrize("token", [None, "a/token+="])
@pytest.mark.parametrize(
    ("method", "path", "query"),
    [
        ("GET", "/bucket", {"uploads": "", "prefix": "a b/ü+=%&x~.parquet", "encoding-type": "url"}),
        ("GET", "/", {"uploads": ""}),
        ("DELETE", "/bucket/a b/ü+=%&*'x~.parquet", {"uploadId": "2~x/+="}),
    ],
)
def test_signatures_are_those_of_the_aws_client(
    method: str, path: str, query: dict[str, str], token: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    auth = pytest.importorskip("botocore.auth", reason="botocore is not installed")
    from botocore.awsrequest import AWSRequest
    from botocore.credentials import Credentials

    now = datetime(2026, 3, 1, 23, 59, 58, tzinfo=UTC)
    monkeypatch.setattr(auth, "get_current_datetime", lambda: now)
    url = _quoted(path, "/")
    request = AWSRequest(method, f"https://host.example:9000{url}", params=query)
    signer = auth.S3SigV4Auth(Credentials(KEYS.key_id, KEYS.secret, token), "s3", "eu-central-1")
    request.context["payload_signing_enabled"] = True
    signer.add_auth(request)
    ours = signed(method, "host.example:9000", url, query, "eu-central-1", Keys(KEYS.key_id, KEYS.secret, token), now)
    assert ours["authorization"] == request.headers["Authorization"]
    assert {name.casefold(): value for name, value in request.headers.items()}.items() <= ours.items()


@pytest.mark.parametrize(
    ("access", "path", "place"),
    [
        (S3Access("s3://b", "k", "s", region="eu-west-1"), "s3://b/x y", "https b.s3.eu-west-1.amazonaws.com  x y"),
        (S3Access("s3://b.c", "k", "s", region="eu-west-1"), "s3a://b.c/x", "https s3.eu-west-1.amazonaws.com /b.c x"),
        (S3Access("s3://b", "k", "s", region="cn-north-1"), "s3://b/x", "https b.s3.cn-north-1.amazonaws.com.cn  x"),
        (S3Access("s3://b", "k", "s", None, "r", "http://h:9000"), "s3://b/x", "http h:9000 /b x"),
        (S3Access("s3://b", "k", "s", None, "r", "http://h:9000", True), "s3://b/x", "http b.h:9000  x"),
        (S3Access("s3://b", None, None, None, "r", "http://h:9000"), "s3://b/x", None),
        (S3Access("s3://b", "k", "s", None, "r"), "/local/file", None),
    ],
)
def test_places(access: S3Access, path: str, place: str | None, bare: pytest.MonkeyPatch) -> None:
    grant("test", "place", access)
    try:
        found = _s3_object(path)
    finally:
        revoke("test")
    assert place == (found and f"{found.scheme} {found.host} {found.base} {found.key}")


def test_keys_are_looked_for_as_pyarrow_does(bare: pytest.MonkeyPatch, tmp_path: Path) -> None:
    granted = S3Access(key_id="k", secret="s", session_token="t")
    assert keys_of(granted) == Keys("k", "s", "t")
    assert keys_of(S3Access()) is None
    (tmp_path / "credentials").write_text(
        "[default]\naws_access_key_id = d\naws_secret_access_key = e\n[role]\nrole_arn = arn\n"
    )
    assert keys_of(S3Access()) == Keys("d", "e", None)
    bare.setenv("AWS_PROFILE", "role")
    assert keys_of(S3Access()) is None
    bare.setenv("AWS_ACCESS_KEY_ID", "env")
    bare.setenv("AWS_SECRET_ACCESS_KEY", "own")
    assert keys_of(S3Access()) == Keys("env", "own", None)
    assert keys_of(granted) == Keys("k", "s", "t")
    assert "own" not in repr(keys_of(S3Access()))


@pytest.fixture
def bare(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> pytest.MonkeyPatch:
    """A machine that has no credentials."""
    for name in ("ACCESS_KEY_ID", "SECRET_ACCESS_KEY", "SESSION_TOKEN", "PROFILE", "ENDPOINT_URL", "ENDPOINT_URL_S3"):
        monkeypatch.delenv(f"AWS_{name}", raising=False)
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "credentials"))
    return monkeypatch

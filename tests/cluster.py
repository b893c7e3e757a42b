"""A standalone Spark cluster on this machine, started from the pip-installed Spark."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyspark

from ducklake_lab.spark.java import find_java

WORKERS = 2
#: For small plans, each run once: a JVM that compiles them to the end and collects garbage on threads of its own takes
#: twice as long on two cores.
QUICK_JAVA = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Xshare:auto"


@contextmanager
def standalone_cluster(folder: Path, memory: str = "512m") -> Iterator[dict[str, str]]:
    """A master and two workers with one core each; the settings of a session that runs on them.

    Args:
        folder: for logs and the workers' files.
        memory: of each executor.
    """
    port = _free_port()
    url = f"spark://127.0.0.1:{port}"
    environment = {
        **os.environ,
        "JAVA_HOME": find_java().launcher(),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_NO_DAEMONIZE": "1",
        "SPARK_DAEMON_MEMORY": "256m",
        "SPARK_DAEMON_JAVA_OPTS": QUICK_JAVA,
        "PYSPARK_PYTHON": sys.executable,
        "PYTHONPATH": os.pathsep.join(filter(None, [os.getcwd(), os.environ.get("PYTHONPATH")])),
    }
    launcher = Path(pyspark.__file__).parent / "bin" / "spark-class"
    web = ["--webui-port", "0"]
    master = ["org.apache.spark.deploy.master.Master", "--host", "127.0.0.1", "--port", str(port), *web]
    worker = ["org.apache.spark.deploy.worker.Worker", "--cores", "1", "--memory", "1g", "--host", "127.0.0.1", *web]
    processes = []
    try:
        for number, command in enumerate([master, *[[*worker, url]] * WORKERS]):
            log = (folder / f"{number}.log").open("w")
            work = folder / f"work{number}"
            work.mkdir()
            started = subprocess.Popen(
                [launcher, *command],
                env={**environment, "SPARK_WORKER_DIR": str(work)},
                stdout=log,
                stderr=subprocess.STDOUT,
                cwd=folder,
            )
            processes.append(started)
            if number == 0:
                _wait_for(port, started, folder / "0.log")
        yield {
            "spark.master": url,
            "spark.executor.memory": memory,
            "spark.executor.cores": "1",
            "spark.executor.extraJavaOptions": QUICK_JAVA,
            "spark.cores.max": str(WORKERS),
            "spark.executorEnv.PYTHONPATH": environment["PYTHONPATH"],
        }
    finally:
        for process in processes:
            process.terminate()
        for process in processes:
            process.wait(30)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _wait_for(port: int, process: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and process.poll() is None:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.1)
    raise RuntimeError(f"The master of the test cluster did not start:\n{log.read_text()}")

"""A Spark standalone cluster on loopback, of the pip package: a master and workers as processes."""

from __future__ import annotations

import os
import re
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pyspark

import tidegate
from tidegate.execute.java import ensure_java

HOST = "127.0.0.1"
HERE = Path(__file__).resolve()
REPOSITORY = HERE.parents[2]
SOURCE = Path(tidegate.__file__).parents[1]
SPARK = Path(pyspark.__file__).parent
PATIENCE_S = 120
LIGHT = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""What makes a JVM start quickly that does not live long."""


@dataclass
class Standalone:
    """A master, and workers of one core each; `folder` is what all hosts of it share."""

    folder: Path
    processes: list[subprocess.Popen[bytes]] = field(default_factory=list)
    url: str = ""

    @property
    def shared(self) -> Path:
        return self.folder / "shared"

    def start_master(self) -> None:
        self.shared.mkdir(parents=True)
        port = free_port()
        self.url = f"spark://{HOST}:{port}"
        log = self._start("master", ["deploy.master.Master", "--port", str(port)], {})
        wait_for(log, "I have been elected leader", self.processes[-1])

    def start_workers(self, own_tmp: Mapping[str, bool]) -> None:
        """Start workers with temporary folders of their own; some have a /tmp of their own too."""
        logs = [self._start_worker(name, own) for name, own in own_tmp.items()]
        for log, process in zip(logs, self.processes[-len(logs) :], strict=True):
            wait_for(log, "Successfully registered with master", process)

    def _start_worker(self, name: str, own_tmp: bool) -> Path:
        home = self.folder / name
        temporary = home / "tmp"
        temporary.mkdir(parents=True)
        words = ["deploy.worker.Worker", "--cores", "1", "--memory", "1g"]
        words += ["--work-dir", str(home / "work"), self.url]
        env = {"SPARK_LOCAL_DIRS": str(home / "local")}
        if own_tmp:
            kept = [self.shared, home, REPOSITORY, SPARK, Path(sys.prefix), Path(sys.base_prefix)]
            seen = [str(temporary), *(str(p.resolve()) for p in kept)]
        else:
            env["TMPDIR"] = str(temporary)
            seen = []
        return self._start(name, words, env, seen)

    def stop(self) -> None:
        for process in reversed(self.processes):
            process.kill()
        for process in self.processes:
            process.wait()

    def _start(
        self, name: str, words: list[str], env: dict[str, str], seen: Sequence[str] = ()
    ) -> Path:
        log = self.folder / f"{name}.log"
        role, *options = words
        options = ["--host", HOST, "--webui-port", "0", *options]
        launch = [sys.executable, str(HERE.with_name("launch.py")), *seen, "--"]
        command = [*(NAMESPACE if seen else []), *launch, str(SPARK / "bin/spark-class")]
        with log.open("wb") as file:
            process = subprocess.Popen(
                [*command, f"org.apache.spark.{role}", *options],
                stdout=file,
                stderr=subprocess.STDOUT,
                stdin=subprocess.DEVNULL,
                env=environment() | env,
            )
        self.processes.append(process)
        return log


CONF = {
    "spark.executor.memory": "512m",
    "spark.executor.extraJavaOptions": LIGHT,
    "spark.driver.extraJavaOptions": LIGHT,
    "spark.sql.codegen.wholeStage": "false",
    "spark.shuffle.readHostLocalDisk": "false",  # which would see that they are on one host
}
"""For a program on the cluster."""

NAMESPACE = ["unshare", "--mount", *(["--map-root-user"] if os.geteuid() else [])]


def namespaces_work() -> bool:
    """Whether this user may have a mount namespace here; containers may forbid it."""
    if shutil.which("unshare") is None:
        return False
    probe = subprocess.run(
        [*NAMESPACE, "mount", "--make-rprivate", "/"], capture_output=True, check=False
    )
    return probe.returncode == 0


def environment() -> dict[str, str]:
    """What the processes of a cluster see: this Tidegate, and nothing of the caller's Spark."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("SPARK_", "PYSPARK_"))}
    java = ensure_java(dict(os.environ))
    more = {
        "JAVA_HOME": str(java.home),
        "SPARK_HOME": str(SPARK),
        "SPARK_LOCAL_IP": HOST,
        "SPARK_DAEMON_MEMORY": "256m",
        "SPARK_DAEMON_JAVA_OPTS": LIGHT,
        "PYTHONPATH": f"{SOURCE}:{REPOSITORY}",
    }
    return kept | more


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        return int(probe.getsockname()[1])


def wait_for(log: Path, words: str, process: subprocess.Popen[bytes]) -> None:
    """Wait until a process has logged something; it is an error if it ends before."""
    end = time.monotonic() + PATIENCE_S
    while not re.search(words, log.read_text(errors="replace")):
        if process.poll() is not None or time.monotonic() > end:
            raise AssertionError(f"no {words!r} in:\n{log.read_text(errors='replace')}")
        time.sleep(0.05)

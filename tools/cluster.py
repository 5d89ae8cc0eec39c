"""A Spark standalone cluster on loopback, of the pip package: a master and workers as processes.

`make cluster` runs it until Ctrl-C; `tests/cluster` starts one for its tests.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import pyspark

import tidegate
from tidegate.clock import SystemClock
from tidegate.execute.java import ensure_java

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tools.jvm import light

HOST = "127.0.0.1"
PORT = 7077
"""Where users of Spark look for a master; taken where it is free."""

HERE = Path(__file__).resolve()
REPOSITORY = HERE.parents[1]
SOURCE = Path(tidegate.__file__).parents[1]
SPARK = Path(pyspark.__file__).parent
PATIENCE_S = 120
LIGHT = light()
"""What makes a JVM start quickly that has little to do."""

NAMESPACE = ["unshare", "--mount", *(["--map-root-user"] if os.geteuid() else [])]

_clock = SystemClock()


@dataclass(frozen=True)
class Machine:
    """Where a process of a cluster runs, and the command and environment that bring it there."""

    address: str = HOST
    enter: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)


LOOPBACK = Machine()


@dataclass
class Standalone:
    """A master and workers below a folder; in `shared` is what the tests have all hosts share.

    They are on loopback but for those in `machines`, by their names. `daemons` are options of
    their JVMs.
    """

    folder: Path
    cores: int = 1
    memory: str = "1g"
    machines: Mapping[str, Machine] = field(default_factory=dict)
    daemons: str = ""
    processes: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)
    url: str = ""
    page: str = ""
    """The address of the master's page, if it has one."""

    @property
    def shared(self) -> Path:
        return self.folder / "shared"

    def start_master(self, port: int = 0, page: bool = False) -> None:
        """Start the master, at any port that is free where it is 0."""
        self.shared.mkdir(parents=True)
        port = port or free_port()
        self.url = f"spark://{self._machine('master').address}:{port}"
        web = free_port() if page else 0
        words = ["deploy.master.Master", "--port", str(port), "--webui-port", str(web)]
        log = self._start("master", words, {})
        wait_for(log, "I have been elected leader", self.processes["master"])
        self.page = f"http://{HOST}:{web}" if page else ""

    def start_workers(self, own_tmp: Mapping[str, bool]) -> None:
        """Start workers with temporary folders of their own; some have a /tmp of their own too."""
        logs = {name: self._start_worker(name, own) for name, own in own_tmp.items()}
        for name, log in logs.items():
            wait_for(log, "Successfully registered with master", self.processes[name])

    def _start_worker(self, name: str, own_tmp: bool) -> Path:
        home = self.folder / name
        temporary = home / "tmp"
        temporary.mkdir(parents=True, exist_ok=True)
        words = ["deploy.worker.Worker", "--cores", str(self.cores), "--memory", self.memory]
        words += ["--webui-port", "0", "--work-dir", str(home / "work"), self.url]
        env = {"SPARK_LOCAL_DIRS": str(home / "local")}
        if own_tmp:
            env["TMPDIR"] = "/tmp"
            kept = [self.shared, home, REPOSITORY, SPARK, Path(sys.prefix), Path(sys.base_prefix)]
            seen = [str(temporary), *(str(p.resolve()) for p in kept)]
        else:
            env["TMPDIR"] = str(temporary)
            seen = []
        return self._start(name, words, env, seen)

    def _machine(self, name: str) -> Machine:
        return self.machines.get(name, LOOPBACK)

    def kill(self, name: str) -> None:
        """Kill the master or a worker at once; the executors of a worker notice it, and end."""
        process = self.processes.pop(name)
        process.kill()
        process.wait()

    def stop(self) -> None:
        """End all processes and what they have started: workers first, which end executors."""
        for process in reversed(self.processes.values()):
            process.terminate()
        for process in self.processes.values():
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            with suppress(ProcessLookupError):  # nobody is left of its group
                os.killpg(process.pid, signal.SIGKILL)
        self.processes.clear()

    def _start(
        self, name: str, words: list[str], env: dict[str, str], seen: Sequence[str] = ()
    ) -> Path:
        log = self.folder / f"{name}.log"
        machine = self._machine(name)
        role, *options = words
        launch = [sys.executable, str(HERE.with_name("launch.py")), *seen, "--"]
        inside = [*machine.enter, *(NAMESPACE if seen else [])]
        command = [*inside, *launch, str(SPARK / "bin/spark-class")]
        own = {
            "SPARK_LOCAL_IP": machine.address,
            "SPARK_DAEMON_JAVA_OPTS": f"{LIGHT} {self.daemons}",
        }
        with log.open("wb") as file:
            self.processes[name] = subprocess.Popen(
                [*command, f"org.apache.spark.{role}", "--host", machine.address, *options],
                stdout=file,
                stderr=subprocess.STDOUT,
                stdin=subprocess.DEVNULL,
                env=environment() | own | env | machine.environment,
                start_new_session=True,  # Ctrl-C is for who started it; and it is a group to end
            )
        return log


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


def is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError:
            return False
        return True


def wait_for(log: Path, words: str, process: subprocess.Popen[bytes]) -> None:
    """Wait until a process has logged something; it is an error if it ends before."""
    end = _clock.now() + PATIENCE_S
    while not re.search(words, log.read_text(errors="replace")):
        if process.poll() is not None or _clock.now() > end:
            raise AssertionError(f"no {words!r} in:\n{log.read_text(errors='replace')}")
        _clock.sleep(0.05)


@contextmanager
def running(workers: int, cores: int, memory: str, port: int | None) -> Iterator[Standalone]:
    """A cluster that ends with the block, and whose folders go with it."""
    folder = Path(tempfile.mkdtemp(prefix="tidegate-cluster-"))
    cluster = Standalone(folder, cores, memory)
    try:
        wanted = PORT if port is None and is_free(PORT) else port or 0
        cluster.start_master(wanted, page=True)
        cluster.start_workers({f"worker-{n}": False for n in range(1, workers + 1)})
        yield cluster
    finally:
        cluster.stop()
        shutil.rmtree(folder, ignore_errors=True)


HOW = """\
A Spark cluster runs on this machine: a master and {workers}, {cores} and {memory} each.

  master   {url}
  its page {page}
  folders  {folder}, removed at the end

Run a query on it from another terminal:

  .venv/bin/tidegate run examples/top_routes.sql --master {url} \\
      --checkpoint /tmp/top/state --out /tmp/top/results

With --conf spark.tidegate.executors=follow it takes as many executors as it has instances.
docs/cluster.md has more. Ctrl-C stops the cluster.
"""


def counted(count: int, what: str) -> str:
    return f"{count} {what}{'' if count == 1 else 's'}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--workers", type=int, default=3, metavar="N", help="default: 3")
    parser.add_argument("--cores", type=int, default=1, metavar="N", help="of each; default: 1")
    parser.add_argument("--memory", default="1g", metavar="SIZE", help="of each; default: 1g")
    parser.add_argument("--port", type=int, metavar="P", help=f"default: {PORT}, if it is free")
    asked = parser.parse_args()
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    print("Starting a Spark cluster: some seconds", file=sys.stderr)
    arguments = asked.workers, asked.cores, asked.memory, asked.port
    with suppress(KeyboardInterrupt), running(*arguments) as cluster:
        said = HOW.format(
            workers=counted(asked.workers, "worker"),
            cores=counted(asked.cores, "core"),
            memory=asked.memory,
            url=cluster.url,
            page=cluster.page,
            folder=cluster.folder,
        )
        print(said, flush=True)
        signal.pause()
    print("The cluster is stopped.", file=sys.stderr)


if __name__ == "__main__":
    main()

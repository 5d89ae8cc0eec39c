"""A Prometheus server of this host, for tests: Debian's, which tools/prometheus.sh finds."""

from __future__ import annotations

import json
import socket
import subprocess
import time
from pathlib import Path
from typing import Any
from urllib.parse import urlencode
from urllib.request import urlopen

TOOL = Path(__file__).parents[2] / "tools" / "prometheus.sh"
DEADLINE_S = 60


def program(name: str) -> str:
    found = subprocess.run([TOOL], capture_output=True, text=True, check=False)
    assert found.returncode == 0, found.stderr
    return str(Path(found.stdout.strip()) / name)


def checked(text: str) -> str:
    """What `promtool check metrics` says of metrics; nothing where all is well."""
    tool = [program("promtool"), "check", "metrics"]
    done = subprocess.run(tool, input=text, capture_output=True, text=True, check=False)
    return f"{done.stdout}{done.stderr}" + (f"code {done.returncode}" if done.returncode else "")


class Prometheus:
    """Scrapes one target five times a second."""

    def __init__(self, folder: Path, target: str) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self._address = f"127.0.0.1:{free.getsockname()[1]}"
        config = folder / "prometheus.yml"
        scrape = {"job_name": "tidegate", "static_configs": [{"targets": [target]}]}
        times = {"scrape_interval": "200ms", "scrape_timeout": "200ms"}
        config.write_text(json.dumps({"global": times, "scrape_configs": [scrape]}))
        self._log = (folder / "prometheus.log").open("wb")
        self._process = subprocess.Popen(
            [
                *("setpriv", "--pdeathsig", "TERM", program("prometheus")),
                f"--config.file={config}",
                f"--storage.tsdb.path={folder / 'data'}",
                f"--web.listen-address={self._address}",
            ],
            stdin=subprocess.DEVNULL,
            stdout=self._log,
            stderr=subprocess.STDOUT,
        )

    def __enter__(self) -> Prometheus:
        return self

    def __exit__(self, *failure: object) -> None:
        self._process.terminate()
        self._process.wait(DEADLINE_S)
        self._log.close()

    def asked(self, path: str, **parameters: str) -> Any:
        """The data of an answer."""
        with urlopen(f"http://{self._address}/api/v1/{path}?{urlencode(parameters)}") as answer:
            return json.load(answer)["data"]

    def instant(self, query: str) -> dict[tuple[tuple[str, str], ...], float]:
        """The newest values of a query, by labels."""
        found = self.asked("query", query=query)["result"]
        return {tuple(sorted(one["metric"].items())): float(one["value"][1]) for one in found}

    def until(self, query: str) -> dict[tuple[tuple[str, str], ...], float]:
        """The same, once there is a value."""
        deadline = time.monotonic() + DEADLINE_S
        while True:
            assert self._process.poll() is None, Path(self._log.name).read_text()
            assert time.monotonic() < deadline, f"{query} has no value: {self._said()}"
            try:
                found = self.instant(query)
            except OSError:  # it is starting
                found = {}
            if found:
                return found
            time.sleep(0.1)

    def _said(self) -> str:
        return f"{self.asked('targets')} {Path(self._log.name).read_text()}"

"""The engines of `peers.py`: where each is installed, how it is started, and what it cannot do."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from measure import HERE

CACHE = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "tidegate" / "peers"
PACKAGES = {"flink": "apache-flink", "bytewax": "bytewax", "pathway": "pathway"}
HERE_TOO = ("tidegate", "spark", "duckdb")
ENGINES = (*HERE_TOO, *PACKAGES)
_STAMP = "installed"
"""A file in an environment, written once all packages are in it."""

_FLINK = "https://nightlies.apache.org/flink/flink-docs-stable/docs/dev/table/sql/queries/joins"
_SPARK = "https://spark.apache.org/docs/latest/streaming/apis-on-dataframes-and-datasets.html"
_BYTEWAX = "https://docs.bytewax.io/stable/guide/concepts/joins.html"
_PATHWAY = "https://pathway.com/developers/api-docs/temporal"
_NO_BATCHES = "it has no batches"
CANNOT: Mapping[str, Mapping[str, str]] = {
    "duckdb": {"tiny": _NO_BATCHES, "latency": "it runs over what is there, and ends"},
    "spark": {
        "band": f"[a join of streams without an equality]({_SPARK}#stream-stream-joins) is refused",
        "asof": f"[joins of streams]({_SPARK}#stream-stream-joins) have no as-of",
    },
    "flink": {
        "band": f"[an interval join]({_FLINK}/#interval-joins) wants an equality",
        "tiny": _NO_BATCHES,
    },
    "bytewax": {
        "equality": f"[its joins]({_BYTEWAX}) are of windows, or keep one row of a side",
        "band": f"[its joins]({_BYTEWAX}) are by key",
        "asof": f"[its joins]({_BYTEWAX}) have no as-of",
        "tiny": _NO_BATCHES,
    },
    "pathway": {
        "band": f"conditions of [an interval join]({_PATHWAY}) must be equalities",
        "tiny": _NO_BATCHES,
    },
}


class Engine:
    """An engine in a virtual environment `PLACE/NAME`, or in a folder of packages of that name.

    Such a folder is for machines without network: it holds packages for the Python that runs this
    program, as `pip install --target` puts them there. Tidegate, Spark and DuckDB need neither.
    """

    def __init__(self, name: str, place: Path) -> None:
        self.name, self._folder = name, place / name
        self._venv = self._folder / "bin" / "python"

    def is_there(self) -> bool:
        """Whether its installation was seen to end well: one that broke off leaves a folder too."""
        if self.name in HERE_TOO:
            return True
        if self._in_venv():
            return (self._folder / _STAMP).exists()
        package = PACKAGES[self.name].replace("-", "_")
        return any(self._folder.glob(f"{package}-*.dist-info/RECORD"))  # written last

    def command(self, job: str) -> list[str]:
        python = str(self._venv) if self._in_venv() else sys.executable
        return [python, str(HERE / "peer_engines" / f"{self.name}_peer.py"), job]

    def environment(self, cores: int) -> dict[str, str]:
        """That of this process; packages of the engine come before those of this Python."""
        paths = [str(HERE)]
        if not self._in_venv():
            paths += filter(None, [os.environ.get("PYTHONPATH")])
        if self.name in PACKAGES and not self._in_venv():
            paths.insert(0, str(self._folder))
        path = os.pathsep.join(paths)
        return {**os.environ, "PATHWAY_THREADS": str(cores), "PYTHONPATH": path}

    def _in_venv(self) -> bool:
        return self.name in PACKAGES and self._venv.exists()


def set_up(place: Path) -> list[str]:
    """An environment for each engine that PyPI has; the names of those that failed."""
    failed = []
    for engine, package in PACKAGES.items():
        done = _installed(place / engine, package)
        print(f"{engine}: {'there' if done else 'could not be installed'}", flush=True)
        failed += [] if done else [engine]
    return failed


def _installed(folder: Path, package: str) -> bool:
    """Install into an environment of its own, with a stamp where all went well."""
    python, stamp = folder / "bin" / "python", folder / _STAMP
    stamp.unlink(missing_ok=True)
    commands = [[str(python), "-m", "pip", "install", "--quiet", package, "pyarrow"]]
    if not python.exists():
        commands.insert(0, [sys.executable, "-m", "venv", str(folder)])
    if any(subprocess.run(command, check=False).returncode for command in commands):
        return False
    stamp.touch()
    return True

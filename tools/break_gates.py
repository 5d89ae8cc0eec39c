"""Breaks each check of `.ci/run` in a copy of the tree, and says which does not notice.

    python tools/break_gates.py              # all of them; exit code 1 where one stays green
    python tools/break_gates.py docs lint    # those of these steps

A check counts as red where it fails and says what is expected of it. All of them take about ten
minutes on two cores, most of that the types and the compiled loops of `ready`.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
LEFT_OUT = shutil.ignore_patterns(".git", ".venv", "site", ".*_cache", ".hypothesis", "__pycache__")


@dataclass(frozen=True)
class Breakage:
    """The smallest change after which a step of `.ci/run` must fail, and what it must say then."""

    step: str
    file: str
    text: str  # at the end of the file, or in place of `old`
    says: str
    old: str = ""
    own_venv: bool = False
    own_home: bool = False


SILENT = '"""A test."""\n\n\ndef test_nothing() -> None:\n    print()\n'
DOUBLE = '\n\nclass Session:\n    """A second class of this name."""\n'
RED = '"""A test."""\n\n\ndef test_red() -> None:\n    assert False\n'

BREAKAGES = (
    Breakage("lint", "src/tidegate/version.py", "import os\n", "F401"),
    Breakage("lint", "tests/seed.py", "X  = 1\n", "1 file would be reformatted"),
    Breakage("lint", "tests/test_silent.py", SILENT, "test_nothing"),
    Breakage("lint", "src/tidegate/version.py", DOUBLE, "a public class name is used once"),
    Breakage("types", "src/tidegate/version.py", 'X: int = ""\n', "Incompatible types"),
    Breakage("layers", "src/tidegate/gate/gate.py", "import tidegate.cli.main\n", "BROKEN"),
    Breakage("layers", "src/tidegate/version.py", "import pyspark\n", "BROKEN"),
    Breakage(
        "docs", "src/tidegate/cli/option/out.py", "import tidegate.sql.bind\n", "run `make rooms`"
    ),
    Breakage("docs", "docs/index.md", "[nothing](nowhere.md)\n", "nowhere.md"),
    Breakage("docs", "docs/index.md", "[nothing](sql.md#nowhere)\n", "nowhere"),
    Breakage("docs", "docs/reference/metrics.md", "One more.\n", "metrics.md not up to date"),
    Breakage("docs", "docs/drawings/gate.svg", "<!-- -->\n", "gate.svg not up to date"),
    Breakage("docs", "docs/orphan.md", "# A page\n", "orphan.md"),
    Breakage("docs", "docs/index.md", "Recieved rows.\n", "Recieved ==> Received"),
    Breakage("docs", "docs/index.md", "The watermrak of a row.\n", ": watermrak"),
    Breakage("ready", "src/tidegate/approx/priority_loop.py", "raise OSError\n", "OSError"),
    Breakage("ready", "tests/test_broken.py", "import nowhere\n", "No module named 'nowhere'"),
    Breakage("test", "tests/test_red.py", RED, "1 failed"),
    Breakage(
        "test", "pyproject.toml", '"rich>=99"', "rich>=99 in requirements.lock", old='"rich>=13"'
    ),
    Breakage(
        "s3-server",
        "tools/s3_server.sh",
        "version=v0.0.0",
        "must build; got the failure above",
        old="version=v1.8.0",
        own_home=True,
    ),
    Breakage(
        "postgres-server",
        "tools/postgres.sh",
        "/usr/lib/nowhere",
        "needs the programs of a Postgres server; got none",
        old="/usr/lib/postgresql/*/bin",
    ),
    Breakage(
        "prometheus-server",
        "tools/prometheus.sh",
        "apt-get download -q nowhere",
        "needs prometheus and promtool; got none",
        old="apt-get download -q prometheus",
        own_home=True,
    ),
    Breakage(
        "kafka-server",
        "tools/jars.sh",
        "<artifactId>nowhere</artifactId>",
        "they must come from Maven Central; got the failure above",
        old="<artifactId>kafka_2.13</artifactId>",
        own_home=True,
    ),
    Breakage(
        "browser",
        "tools/browser.sh",
        "digest=0000",
        "axe.tgz: FAILED",
        old="digest=2277",
        own_home=True,
    ),
    Breakage(
        "setup",
        "requirements.lock",
        "nowhere==1.0 --hash=sha256:" + "0" * 64 + "\n",
        "the versions of requirements.lock must install",
        own_venv=True,
    ),
    Breakage(
        "newcomer",
        "Makefile",
        "demo: nowhere",
        "`make demo` must succeed in a fresh clone",
        old="demo: setup",
        own_venv=True,
    ),
)
ARGUMENTS = {
    "test": ['PYTEST_ARGS=tests/test_red.py tests/test_wheel.py -k "red or lock"', "WORKERS=-n 0"]
}


def broken(of: Breakage) -> str | None:
    """What a step with a breakage said, where it did not fail as it should."""
    with tempfile.TemporaryDirectory(prefix="tidegate-gates-") as folder:
        place = Path(folder, "tidegate")
        shutil.copytree(ROOT, place, ignore=LEFT_OUT)
        path = place / of.file
        before = path.read_text(encoding="utf-8") if path.exists() else ""
        assert of.old in before, f"{of.file} has no {of.old}"
        after = before.replace(of.old, of.text, 1) if of.old else before + of.text
        path.write_text(after, encoding="utf-8")
        (place / "tests" / "test_red.py").touch()
        command = ["make", "--no-print-directory", *ARGUMENTS.get(of.step, []), of.step]
        left_out = ("MAKEFLAGS", "PYTHON", "LOCKED", "PYTHONPATH")
        kept = {k: v for k, v in os.environ.items() if k not in left_out}
        if not of.own_venv:
            (place / ".venv").symlink_to(ROOT / ".venv")
            command += ["--old-file", ".venv/.setup-done"]
            # `.venv` has the package of this tree.
            kept["PYTHONPATH"] = f"{place / 'src'}{os.pathsep}{place}"
        if of.own_home:
            kept["XDG_CACHE_HOME"] = folder
        done = subprocess.run(
            command,
            cwd=place,
            env=kept,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        said = done.stdout + done.stderr
    return None if done.returncode and of.says in said else said


def main(words: list[str]) -> int:
    green = 0
    for of in BREAKAGES:
        if words and of.step not in words:
            continue
        said = broken(of)
        green += said is not None
        print(f"make {of.step:9}  {of.file:38} {'red' if said is None else 'NOT RED'}", flush=True)
        if said is not None:
            print("\n".join(said.splitlines()[-30:]))
    return 1 if green else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

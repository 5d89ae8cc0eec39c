"""Makes the mistakes of `mutants/` one by one in a copy of the tree, and says which go unnoticed.

    python tools/mutate.py                 # all of them; exit code 1 where one survives
    python tools/mutate.py sync pairs      # those with one of these words in their names
    python tools/mutate.py --jobs 4 --list

Takes about ten seconds a mutant and core. The tests of a mutant must pass without it; that is tried
first, for all of them together (`--skip-baseline` leaves it out).
"""

from __future__ import annotations

import argparse
import ast
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from queue import SimpleQueue

sys.path.insert(0, str(Path(__file__).parent))

from mutants import MUTANTS, Mutant

ROOT = Path(__file__).parents[1]
COPIED = ("src", "tests", "tools", "docs", "examples", "benchmarks")
PASSED, FAILED = 0, 1
"""Exit codes of pytest; every other means that it could not do its work."""

TIMEOUT_S = 900


def problem(mutant: Mutant) -> str | None:
    """Why a mutant cannot be made any more; None where it can."""
    path = ROOT / "src" / "tidegate" / mutant.file
    if not path.exists():
        return f"src/tidegate/{mutant.file} is gone"
    count = path.read_text(encoding="utf-8").count(mutant.old)
    if count != 1:
        return f"src/tidegate/{mutant.file} has its text {count} times instead of once"
    try:
        ast.parse(mutated(path, mutant))
    except SyntaxError as error:
        return f"it does not parse: {error}"
    missing = [t for t in paths(mutant) if not (ROOT / t).exists()]
    return f"its tests are gone: {', '.join(missing)}" if missing else None


def mutated(path: Path, mutant: Mutant) -> str:
    return path.read_text(encoding="utf-8").replace(mutant.old, mutant.new)


def paths(mutant: Mutant) -> list[str]:
    """The files and folders of a mutant's tests, without options."""
    return [w.partition("::")[0] for w in mutant.tests.split() if w.startswith("tests")]


class Copy:
    """A tree of its own, in which one mutant at a time is made."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        for name in COPIED:
            shutil.copytree(ROOT / name, folder / name, ignore=_caches)
        for path in ROOT.glob("*.*"):
            if path.is_file():
                shutil.copy(path, folder)
        shutil.copy(ROOT / "Makefile", folder)

    def outcome(self, mutant: Mutant) -> tuple[int, str]:
        """The exit code of its tests with the mutant made, and the end of what they said."""
        path = self.folder / "src" / "tidegate" / mutant.file
        before = path.read_text(encoding="utf-8")
        path.write_text(mutated(path, mutant), encoding="utf-8")
        try:
            return self.tested(mutant.tests.split())
        finally:
            path.write_text(before, encoding="utf-8")

    def tested(self, tests: Iterable[str]) -> tuple[int, str]:
        environment = {"TIDEGATE_TEST_MODE": "mutants"}
        place = f"{self.folder / 'src'}{os.pathsep}{self.folder}"
        command = [sys.executable, "-B", "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider"]
        try:
            done = subprocess.run(
                [*command, *dict.fromkeys(tests)],
                check=False,
                cwd=self.folder,
                env={**os.environ, **environment, "PYTHONPATH": place},
                capture_output=True,
                text=True,
                timeout=TIMEOUT_S,
            )
        except subprocess.TimeoutExpired:  # one that never ends is found as well
            return FAILED, f"not done within {TIMEOUT_S} s"
        return done.returncode, "\n".join([*done.stdout.splitlines()[-15:], done.stderr[-500:]])


def _caches(folder: str, names: list[str]) -> set[str]:
    return {n for n in names if n in ("__pycache__", ".pytest_cache")}


@contextmanager
def copies(count: int) -> Iterator[SimpleQueue[Copy]]:
    """Trees to take from and to give back to."""
    with tempfile.TemporaryDirectory(prefix="tidegate-mutants-") as folder:
        free: SimpleQueue[Copy] = SimpleQueue()
        for number in range(count):
            place = Path(folder, str(number))
            place.mkdir()
            free.put(Copy(place))
        yield free


def chosen(words: list[str]) -> list[Mutant]:
    return [m for m in MUTANTS if not words or any(w in m.name for w in words)]


def run(mutants: list[Mutant], jobs: int, baseline: bool) -> int:
    with copies(jobs) as free:
        if baseline:
            copy = free.get()
            code, told = copy.tested([w for m in mutants for w in paths(m)])
            free.put(copy)
            if code != PASSED:
                print(f"the tests must pass before anything is changed; got\n{told}")
                return 2

        def one(mutant: Mutant) -> tuple[Mutant, int, str]:
            copy = free.get()
            try:
                code, told = copy.outcome(mutant)
            finally:
                free.put(copy)
            word = {PASSED: "SURVIVED", FAILED: "killed"}.get(code, "BROKEN")
            print(f"{word:8} {mutant.name}", flush=True)
            return mutant, code, told

        with ThreadPoolExecutor(jobs) as pool:
            done = list(pool.map(one, mutants))
    for mutant, code, told in done:
        if code not in (PASSED, FAILED):
            print(f"\n{mutant.name}: pytest ended with {code}\n{told}")
    alive = [m for m, code, _ in done if code != FAILED]
    print(f"\n{len(done) - len(alive)} of {len(done)} mutants were found by their tests")
    for mutant in alive:
        print(f"  not: {mutant.name} (src/tidegate/{mutant.file}; {mutant.tests})")
    return 1 if alive else 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("words", nargs="*", help="words of the names of mutants")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--list", action="store_true", help="name them and do nothing")
    parser.add_argument("--skip-baseline", action="store_true")
    asked = parser.parse_args()
    mutants = chosen(asked.words)
    wrong = {m.name: p for m in mutants if (p := problem(m)) is not None}
    for name, text in wrong.items():
        print(f"{name}: {text}")
    if asked.list:
        print(*(m.name for m in mutants), sep="\n")
    if asked.list or wrong or not mutants:
        return 2 if wrong or not mutants else 0
    return run(mutants, asked.jobs, not asked.skip_baseline)


if __name__ == "__main__":
    sys.exit(main())

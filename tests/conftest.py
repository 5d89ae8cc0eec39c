"""What all tests share: markers, the long mode, how Hypothesis searches, where files are."""

from __future__ import annotations

import gc
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, settings
from xdist.scheduler import LoadScopeScheduling

from tests import scratch
from tests.seed import FIXED, SEED, VARIABLE

LONG = os.environ.get("TIDEGATE_TEST_MODE") == "long"
NEEDS_JVM = ("spark", "cluster")
WHOLE = (
    "browser cases cli crash dashboard docs driver duckdb examples fuzz kafka lineage nemesis "
    "postgres prometheus property s3 secrets session simulation testing"
).split()
"""Folders whose tests run whole queries, or processes; the others test one thing at a time."""

TOGETHER = (
    "browser/ cluster/ crash/ nemesis/ spark/test_crash_on_spark.py s3/ postgres/ kafka/ approx/ "
    "cli/test_calibrate.py docs/test_new_ "
    "docs/test_touched.py driver/test_change.py execute/resident/test_crew.py "
    "operate/aggregate/test_coverage.py property/test_balance.py property/test_bounds.py "
    "sink/test_batch_ledger.py"
).split()
"""How the paths of tests begin that share what is dear to make: processes, runs to compare with.
Each worker would make it again; so one of them runs all that begin alike."""

SCRATCH = pytest.StashKey[Path | None]()
"""The folder that this process has made for temporary files."""

COLLECT_AFTER = (10_000, 10, 10)
"""New objects, and collections of the younger before those of the older (`gc.set_threshold`)."""

settings.register_profile(
    "ci",
    derandomize=True,
    max_examples=20,
    deadline=None,
    database=None,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile("new", settings.get_profile("ci"), derandomize=False)
settings.register_profile("long", settings.get_profile("new"), max_examples=2000)
# For `tools/mutate.py`: that something failed is all it wants to know.
settings.register_profile(
    "mutants", settings.get_profile("ci"), phases=[Phase.explicit, Phase.generate]
)
MUTANTS = os.environ.get("TIDEGATE_TEST_MODE") == "mutants"
settings.load_profile("long" if LONG else "mutants" if MUTANTS else "ci" if FIXED else "new")


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Hypothesis draws from the seed of the run, unless it is told another; files are in memory."""
    if not FIXED and config.getoption("--hypothesis-seed") is None:
        config.option.hypothesis_seed = str(SEED)
    config.stash[SCRATCH] = None if _is_worker(config) else scratch.enter()


def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    """Files of a run that failed are there to be looked at."""
    gc.unfreeze()  # else libraries say at the end of the process that they have leaked
    if exitstatus != pytest.ExitCode.OK:
        session.config.stash[SCRATCH] = None


def pytest_unconfigure(config: pytest.Config) -> None:
    """After the last fixture of all workers."""
    folder = config.stash.get(SCRATCH, None)
    if folder is not None:
        scratch.leave(folder)


def _is_worker(config: pytest.Config) -> bool:
    """Whether another process hands out the tests, and has made what they share."""
    return hasattr(config, "workerinput")


def pytest_report_header() -> str:
    """So that what was drawn can be drawn again."""
    if FIXED:
        return "seed: 0, as always; `make fuzz` draws a new one"
    return f"seed: {SEED}; {VARIABLE}={SEED} draws the same again"


def pytest_itemcollected(item: pytest.Item) -> None:
    """Mark what needs a JVM, and what runs whole queries; single tests may be marked as well."""
    folder = item.path.relative_to(Path(__file__).parent).parts[0]
    if folder in NEEDS_JVM:
        item.add_marker(pytest.mark.spark)
    if folder in (*NEEDS_JVM, *WHOLE):
        item.add_marker(pytest.mark.whole)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave the long tests out in the short mode; `make test-long` runs them."""
    if not LONG:
        long = [item for item in items if item.get_closest_marker("long")]
        config.hook.pytest_deselected(items=long)
        items[:] = [item for item in items if item not in long]


def pytest_collection_finish() -> None:
    """Thousands of tests stay until the end: the collector need not look through them each time."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(*COLLECT_AFTER)


def pytest_xdist_auto_num_workers() -> int:
    """One more than there are processors: the worker with the JVM often waits for it."""
    return len(os.sched_getaffinity(0)) + 1


class Sharing(LoadScopeScheduling):
    """Gives tests that share a JVM, or TOGETHER, to one worker; the others to whoever is free.

    Those that share go first, the most first.
    """

    def _split_scope(self, nodeid: str) -> str:
        # xdist's own way, its mark `xdist_group`, has no effect under pytest 9.
        path = nodeid.removeprefix("tests/")
        alone = "jvm" if path.startswith("spark/") else nodeid
        return next((start for start in TOGETHER if path.startswith(start)), alone)

    def mark_test_complete(self, node: Any, item_index: int, duration: float = 0) -> None:
        """Forget what is done: xdist looks through all of it after each test."""
        super().mark_test_complete(node, item_index, duration)
        work = self.assigned_work[node]
        scope = self._split_scope(self.registered_collections[node][item_index])
        if all(work[scope].values()):
            del work[scope]


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Where something failed, the seed stands beside it."""
    if terminalreporter.stats.get("failed") or terminalreporter.stats.get("error"):
        terminalreporter.write_line(pytest_report_header())


@pytest.hookimpl(tryfirst=True, optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Sharing:
    """Called once by xdist, in the process that hands out the tests."""
    return Sharing(config, log)

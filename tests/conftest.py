"""What all tests share: markers by folder, the long mode, and how Hypothesis searches."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, settings
from xdist.scheduler import LoadScopeScheduling

from tests.seed import FIXED, SEED, VARIABLE

LONG = os.environ.get("TIDEGATE_TEST_MODE") == "long"
NEEDS_JVM = ("spark", "cluster")
WHOLE = (
    "cases cli crash docs driver duckdb examples fuzz property s3 session simulation testing"
).split()
"""Folders whose tests run whole queries, or processes; the others test one thing at a time."""

settings.register_profile(
    "ci",
    derandomize=True,
    max_examples=25,
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
    """Hypothesis draws from the seed of the run, unless it is told another."""
    if not FIXED and config.getoption("--hypothesis-seed") is None:
        config.option.hypothesis_seed = str(SEED)


def pytest_report_header() -> str:
    """So that what was drawn can be drawn again."""
    if FIXED:
        return "seed: 0, as always in CI"
    return f"seed: {SEED}, drawn for this run; {VARIABLE}={SEED} draws the same again"


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


class OneJvm(LoadScopeScheduling):
    """Gives all tests that need a JVM to one worker, and the others to whoever is free."""

    def _split_scope(self, nodeid: str) -> str:
        # xdist's own way, its mark `xdist_group`, has no effect under pytest 9.
        needs = nodeid.startswith(tuple(f"tests/{folder}/" for folder in NEEDS_JVM))
        return "jvm" if needs else nodeid


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Where something failed, the seed stands beside it."""
    if terminalreporter.stats.get("failed") or terminalreporter.stats.get("error"):
        terminalreporter.write_line(pytest_report_header())


@pytest.hookimpl(tryfirst=True, optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> OneJvm:
    """Called once by xdist, in the process that hands out the tests."""
    return OneJvm(config, log)

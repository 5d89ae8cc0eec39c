"""What all tests share: markers by folder, the long mode, and how Hypothesis searches."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from xdist.scheduler import LoadScopeScheduling

LONG = os.environ.get("TIDEGATE_TEST_MODE") == "long"
NEEDS_JVM = ("spark", "cluster")
WHOLE = "cases cli crash docs driver duckdb examples fuzz property s3 session testing".split()
"""Folders whose tests run whole queries, or processes; the others test one thing at a time."""

# The same examples on every machine and every run, so that a red build is red for its change.
settings.register_profile(
    "ci",
    derandomize=True,
    max_examples=25,
    deadline=None,
    database=None,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
)
# New examples each time, and many of them.
settings.register_profile("long", settings.get_profile("ci"), derandomize=False, max_examples=2000)
settings.load_profile("long" if LONG else "ci")


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


@pytest.hookimpl(tryfirst=True, optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> OneJvm:
    """Called once by xdist, in the process that hands out the tests."""
    return OneJvm(config, log)

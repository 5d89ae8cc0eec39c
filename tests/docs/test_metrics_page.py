"""The page on metrics: its table is the one of the code, and its alerts ask for what is there."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import yaml

from tests.docs.block import ROOT, blocks
from tests.prometheus.server import program
from tests.prometheus.test_scrape import LINE
from tidegate.driver.metric.registry import FAMILIES

PAGE = "docs/metrics.md"


def table(heading: str) -> list[list[str]]:
    """The cells of the rows of the table under a heading."""
    text = (ROOT / PAGE).read_text(encoding="utf-8").partition(f"## {heading}\n")[2]
    rows = re.findall(r"^\| (.*) \|$", text.partition("\n## ")[0], re.MULTILINE)
    return [row.split(" | ") for row in rows[1:]]


def test_its_configuration_and_alerts_are_valid(tmp_path: Path) -> None:
    config, rules = blocks(PAGE, "yaml")
    for kind, text in (("config", config), ("rules", rules)):
        (tmp_path / kind).write_text(text)
        words = [program("promtool"), "check", kind, str(tmp_path / kind)]
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
    names = {family.series_name for family in FAMILIES}
    alerts = [rule["expr"] for group in yaml.safe_load(rules)["groups"] for rule in group["rules"]]
    asked = {name for expr in alerts for name in re.findall(r"tidegate_\w+", expr)}
    assert len(asked) >= len(alerts)
    assert asked <= names


def test_the_fields_of_a_line_are_told() -> None:
    fields = {row[0].strip("`") for row in table("The log as JSON")}
    assert fields == {*LINE, "error", "traceback", "summary"}

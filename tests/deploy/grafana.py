"""The dashboard for Grafana in deploy/, and what it asks Prometheus for."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

FILE = Path(__file__).parents[2] / "deploy" / "grafana" / "tidegate.json"


def dashboard() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(FILE.read_text(encoding="utf-8"))
    return found


def panels() -> list[dict[str, Any]]:
    """Those that show something."""
    return [panel for panel in dashboard()["panels"] if panel["type"] != "row"]


def expressions() -> list[str]:
    """All that it asks, with the variables as Grafana fills them in."""
    asked = [target["expr"] for panel in panels() for target in panel["targets"]]
    asked += [one["expr"] for one in dashboard()["annotations"]["list"]]
    return [e.replace("$query", ".*").replace("$__rate_interval", "5s") for e in asked]

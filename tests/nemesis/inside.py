"""A campaign inside of its namespaces: `machine.entered` starts it, a report is its output."""

from __future__ import annotations

import json
import sys

from tests.nemesis.arena import Arena
from tests.nemesis.campaign import Campaign
from tests.nemesis.machine import prepare
from tests.nemesis.schedule import SETTINGS


def main(asked: str) -> None:
    """Run it; what it has started ends with the namespaces, whose first process this is."""
    given = json.loads(asked)
    setting = SETTINGS[given["setting"]]
    arena = Arena(prepare(setting.hosts) / "arena", setting.hosts)
    report = Campaign(arena, given["seed"]).run(setting, given["seconds"])
    print(report.as_json(), flush=True)


if __name__ == "__main__":
    main(sys.argv[1])

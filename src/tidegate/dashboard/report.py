"""Writes a query's status and batches into one HTML page that needs no server and no network.

It is the page that the server sends, with scripts, styles and data inlined. Its JavaScript modules
become one script, in which each module is a function that returns its exports. So each exported
name must be unique, and an import must be on one line, without renaming.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import re
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any

from tidegate import schedule
from tidegate.dashboard.query_view import CheckpointQuery
from tidegate.driver.journal.files import read_status
from tidegate.errors import CheckpointError, OptionError
from tidegate.json_text import json_text
from tidegate.state.store import Store

WHOLE_BATCHES = 300
"""The newest batches, which keep the steps of each instance."""

MOST_BATCHES = 10_000

_IMPORT = re.compile(r'^import \{[^}]*\} from "\./(\w+\.js)";\n', re.MULTILINE)
_EXPORT = re.compile(r"^export (?=(?:const|function|class) (\w+))", re.MULTILINE)
_BRIEF = (
    "batch at ms rows_in rows_out rows_late rows_rejected rows_shed instances state_bytes backlog "
    "latency_ms predicted_ms"
).split()

Facts = Mapping[str, Any]


def report_of(place: str) -> str:
    """The page for a checkpoint's journal, or for a file that `--summary` has written."""
    title = os.path.basename(place.rstrip("/")) or place
    if os.path.isfile(place):
        return _page(title, _summary(place), ())
    store = Store.open(place)
    status = read_status(store.files) if store.files.is_folder() else None
    if status is None:
        raise CheckpointError(
            place,
            "must be a checkpoint with the journal of a run, or the file of a --summary",
            "a folder without a journal" if store.files.is_folder() else "no such folder or file",
            "Give the folder that a run had as --checkpoint; its first seconds leave a journal.",
        )
    query = CheckpointQuery(place, schedule.current().clock)
    return _page(
        title, query.picture(), _shortened(map(json.loads, query.batches(-1, MOST_BATCHES)))
    )


def _summary(path: str) -> Facts:
    try:
        found, got = json.loads(Path(path).read_bytes()), "other JSON"
    except ValueError:
        found, got = None, "no JSON"
    except OSError as error:
        found, got = None, error.strerror or str(error)
    if not isinstance(found, dict) or not {"batches", "rows_in", "finished"} <= found.keys():
        raise OptionError(
            path,
            "must be a checkpoint, or a summary that `tidegate run --summary FILE` has written",
            got,
            "Give the folder that a run had as --checkpoint, or that file.",
        )
    state = "finished" if found["finished"] else "stopped"
    return {"state": state, "subqueries": _subqueries(found), **found}


def _subqueries(summary: Facts) -> dict[str, Any]:
    """The newest epoch of each subquery; a summary lists them as switches."""
    return {
        one["subquery"]: {"epoch": one["epoch"], "instances": one["instances"]}
        for one in summary.get("epochs", [])
    }


def _shortened(batches: Iterable[Facts]) -> list[Facts]:
    """The newest batches; only the last WHOLE_BATCHES of them keep their steps."""
    whole: deque[Facts] = deque()
    brief: deque[Facts] = deque(maxlen=MOST_BATCHES - WHOLE_BATCHES)
    for batch in batches:
        whole.append(batch)
        if len(whole) > WHOLE_BATCHES:
            brief.append(_brief(whole.popleft()))
    return [*brief, *whole]


def _brief(batch: Facts) -> Facts:
    instances: dict[str, int] = {}
    for task in batch["tasks"]:
        instances[task["subquery"]] = instances.get(task["subquery"], 0) + 1
    serial_ms = max(batch["ms"] - batch["driver_ms"].get("operate", 0.0), 0.0)
    kept = {name: batch[name] for name in _BRIEF}
    return {**kept, "serial_ms": round(serial_ms, 3), "instances_of": instances}


def _page(title: str, status: Facts, batches: Iterable[Facts]) -> str:
    """The HTML page with its data, in which `<` is escaped so that it cannot end the script."""
    query = {"id": "0", "title": title, "state": status["state"], "control": False}
    data = {"queries": [query], "status": {"0": status}, "batches": {"0": list(batches)}}
    # Without "<" no text in the data can end the script element that holds it.
    text = json_text(data).replace("<", "\\u003c")
    scripts = [_read("uplot.js"), "".join(_modules("main.js", set()))]
    style = _read("uplot.css") + _read("style.css")
    policy = (
        f"default-src 'none'; script-src {' '.join(map(_digest, scripts))}; "
        f"style-src {_digest(style)}; img-src data:; base-uri 'none'; form-action 'none'"
    )
    head, _, rest = _read("index.html").partition('<link rel="stylesheet"')
    body = rest.partition("</head>")[2].partition("<script")[0]
    return (
        f'{head}<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        f"<style>{style}</style>\n</head>{body}"
        f'<script type="application/json" id="data">{text}</script>\n'
        f'<script>{scripts[0]}</script>\n<script type="module">{scripts[1]}</script>\n'
        "</body>\n</html>\n"
    )


def _modules(name: str, taken: set[str]) -> Iterator[str]:
    """The text of a module after the modules that it imports, each once."""
    if name in taken:
        return
    taken.add(name)
    text = _read(name)
    for imported in _IMPORT.findall(text):
        yield from _modules(imported, taken)
    given = ", ".join(_EXPORT.findall(text))
    inside = _EXPORT.sub("", _IMPORT.sub("", text))
    yield f"const {{ {given} }} = (() => {{\n{inside}return {{ {given} }};\n}})();\n"


def _digest(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def _read(name: str) -> str:
    return files(__package__).joinpath("page", name).read_text(encoding="utf-8")

"""Write the tables of the documentation that come from results, each between its two marks.

    python benchmarks/tables.py

A mark is `<!-- results: NAME -->` before a table and `<!-- end of results -->` after it, where NAME
is a report in benchmarks/results/ (`batch_cost`, `latency`, ...). What lies between them is
replaced; a report that is not there leaves it as it is.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from typing import Any

import autoscale_engine
import batch_cost
import execution
import latency
import model_accuracy
import promise
import resident_memory
from measure import HERE, RESULTS

PAGES = [
    HERE.parent / "docs" / name
    for name in ("performance.md", "approximation.md", "model.md", "autoscale.md")
]
TABLES: dict[str, Callable[[dict[str, Any]], Iterator[str]]] = {
    "autoscale_engine": lambda report: autoscale_engine.table(report["experiments"]),
    "batch_cost": lambda report: batch_cost.table(report["cases"]),
    "execution": lambda report: execution.table(report["cases"]),
    "latency": lambda report: latency.table(report["latency"]),
    "model_accuracy": lambda report: model_accuracy.table(report["setups"]),
    "promise": lambda report: promise.table(report["cells"]),
    "refused": lambda report: latency.refused_table(report["refused"]),
    "resident_memory": lambda report: resident_memory.table(report["cases"]),
}
_REPORTS = {"refused": "latency"}
_MARKED = re.compile(r"<!-- results: (\w+) -->\n.*?<!-- end of results -->", re.DOTALL)


def filled(found: re.Match[str]) -> str:
    """A table as its report has it."""
    name = found[1]
    file = RESULTS / f"{_REPORTS.get(name, name)}.json"
    if not file.exists():
        print(f"{name}: there is no {file.name}; its table stays as it is")
        return found[0]
    lines = "\n".join(TABLES[name](json.loads(file.read_text())))
    return f"<!-- results: {name} -->\n\n{lines}\n\n<!-- end of results -->"


def main() -> None:
    texts = {page: page.read_text() for page in PAGES}
    places = [name for text in texts.values() for name in _MARKED.findall(text)]
    assert sorted(places) == sorted(TABLES), "each table has its place"
    for page, text in texts.items():
        page.write_text(_MARKED.sub(filled, text))


if __name__ == "__main__":
    main()

"""The example notebook, run by a kernel of Jupyter as a person would."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient

from tests.examples.example import FOLDER

NOTEBOOK = FOLDER / "live_query.ipynb"


@pytest.fixture(scope="module")
def cells(tmp_path_factory: pytest.TempPathFactory) -> list[Any]:
    """Those with code, with what they have shown when the query has ended."""
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    seen = "query._cell.ended.result(60)"  # what was shown last has come when it is done
    notebook.cells.append(nbformat.v4.new_code_cell(seen))
    folder = str(tmp_path_factory.mktemp("notebook"))
    resources = {"metadata": {"path": folder}}
    NotebookClient(notebook, timeout=240, kernel_name="python3", resources=resources).execute()
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def html(cell: Any) -> str:
    (output,) = cell.outputs
    return str(output["data"]["text/html"])


def test_streams_and_plans_are_shown(cells: list[Any]) -> None:
    assert "<td>dropoff_time</td><td><code>timestamp</code></td>" in html(cells[0])
    assert "<th>route</th>" in html(cells[1])
    assert html(cells[2]).startswith("<pre>query\n")


def test_the_query_has_shown_itself_until_its_end(cells: list[Any]) -> None:
    """One display, written anew: it says how the query ended, and where its page was."""
    shown = html(cells[3])
    assert "RunningQuery(finished: " in shown
    assert "<td>20,000 rows in, " in shown
    assert "<polyline points=" in shown
    assert '<a href="http://127.0.0.1:' in shown
    assert "20,000 rows in" in cells[4].outputs[0]["text"]
    assert int(cells[5].outputs[0]["data"]["text/plain"]) > 100


def test_it_is_kept_without_what_it_has_shown() -> None:
    kept = nbformat.read(NOTEBOOK, as_version=4)
    nbformat.validate(kept)
    assert all(not cell.outputs for cell in kept.cells if cell.cell_type == "code")
    assert NOTEBOOK.name in Path(FOLDER / "README.md").read_text()

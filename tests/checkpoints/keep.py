"""Keeps checkpoints of the present format: `python -m tests.checkpoints.keep NAME`.

Run it before a change of the format, with a new name, and commit what it writes to `kept/NAME/`.
Each archive holds the checkpoint after the first half of the input, and the rows of the second.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import tempfile
import zipfile
from pathlib import Path

from tests.checkpoints.query import QUERIES, run, write_half, write_tables

KEPT = Path(__file__).parent / "kept"
ROWS_FILE = "rows.json"


def main(name: str) -> None:
    folder = KEPT / name
    folder.mkdir(parents=True)
    for query in QUERIES:
        with tempfile.TemporaryDirectory() as scratch:
            os.chdir(scratch)
            keep(query, Path(scratch), folder / f"{query}.zip")


def keep(query: str, scratch: Path, archive: Path) -> None:
    write_tables(scratch, "kept")
    for stream in "lr":
        write_half(scratch, stream, 0)
    run(query, scratch, instances=2, available_now=True)
    shutil.copytree("checkpoint", "halfway")
    for stream in "lr":
        write_half(scratch, stream, 1)
    rows = run(query, scratch, instances=3)
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as into:
        into.writestr(ROWS_FILE, json.dumps(rows, default=str))
        for path in sorted(p for p in Path("halfway").rglob("*") if p.is_file()):
            into.write(path, Path("checkpoint") / path.relative_to("halfway"))


if __name__ == "__main__":
    main(sys.argv[1])

"""The source archive: its tests are those of the tree, and they run without .git.

`make try-sdist` runs all of them from there. Here they are collected, which imports everything, and
those run that read the files of the project by their paths.
"""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
READ_FILES = (
    "test_release",
    "test_wheel",
    "test_words",
    "test_reference",
    "test_tasks_page",
)


@pytest.mark.whole
@pytest.mark.timeout(900)
def test_the_tests_are_all_in_the_source_archive_and_run_there(
    request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    """A run of the whole suite asks for all of its tests, another for those of its files."""
    here = request.session.items
    files = {str(item.path.relative_to(ROOT)) for item in here}
    files |= {str(p.relative_to(ROOT)) for n in READ_FILES for p in ROOT.glob(f"tests/**/{n}.py")}
    assert len(files) > len(READ_FILES)
    done = subprocess.run(
        [
            "tools/try_sdist.sh",
            "-k",
            " or ".join(f"{name}.py" for name in READ_FILES),
            "-n",
            "0",
            *sorted(files),
        ],
        cwd=ROOT,
        env={**os.environ, "WORKERS": "", "TMPDIR": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    collected = re.search(r"^collected (\d+) items", done.stdout, re.MULTILINE)
    passed = re.search(r" (\d+) passed", done.stdout)
    assert collected
    assert passed
    assert int(collected[1]) >= len(here)
    assert int(passed[1]) > 60
    assert list(tmp_path.glob("tidegate-sdist-*")) == []

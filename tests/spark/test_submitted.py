"""spark-submit as the page "On a cluster" has it, on one host; tests/cluster has it on several."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pyarrow.csv
import pyspark
import pytest

from tests.crash.process import QUICK_JVM
from tidegate.execute.java import ensure_java

PAGE = Path(__file__).parents[2] / "docs/cluster.md"
QUERY = "CREATE STREAM s FROM 's.csv'; SELECT k, COUNT(*) AS n FROM s [RANGE 1 HOUR] GROUP BY k"
WRONG = "#!/bin/sh\necho 'the python3 of the host was started' >&2\nexit 3\n"


def environment(first: Path) -> dict[str, str]:
    """Nothing is said of any Python, but that commands are found in this folder first."""
    kept = {n: v for n, v in os.environ.items() if not n.startswith(("PYSPARK_", "SPARK_"))}
    home = str(ensure_java(dict(os.environ)).home)
    return kept | QUICK_JVM | {"PATH": f"{first}:{os.environ['PATH']}", "JAVA_HOME": home}


@pytest.mark.parametrize("way", ["activated", "named"])
def test_workers_have_the_python_of_the_driver(way: str, tmp_path: Path) -> None:
    page = PAGE.read_text(encoding="utf-8")
    (program,) = re.findall(r"```python\n# tide\.py\n(.+?)```", page, re.DOTALL)
    assert "source env/bin/activate" in page
    assert "--conf spark.pyspark.driver.python=env/bin/python" in page
    (tmp_path / "tide.py").write_text(program)
    (tmp_path / "q.sql").write_text(QUERY)
    (tmp_path / "s.csv").write_text("ts,k\n2024-01-01T00:00:01Z,a\n2024-01-01T00:00:02Z,a\n")
    own = Path(sys.executable).parent
    words, env = ["spark-submit"], environment(own)
    if way == "named":
        (tmp_path / "bin").mkdir()
        (tmp_path / "bin/python3").write_text(WRONG)
        (tmp_path / "bin/python3").chmod(0o755)
        env = environment(tmp_path / "bin") | {"SPARK_HOME": str(Path(pyspark.__file__).parent)}
        words = [
            str(own / "spark-submit"),
            "--conf",
            f"spark.pyspark.driver.python={sys.executable}",
        ]
    words += ["--master", "local[1]", "tide.py", "run", "q.sql", "--checkpoint", "c", "--out", "o"]
    done = subprocess.run(
        [*words, "--format", "csv"],
        cwd=tmp_path,
        env=env,
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    (part,) = tmp_path.glob("o/batch=*/*.csv")
    assert pyarrow.csv.read_csv(part).column("n").to_pylist() == [2]

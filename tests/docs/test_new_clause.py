"""The new clause that CONTRIBUTING.md shows: one file and one line, for SQL and for Python."""

from __future__ import annotations

import pytest

from tests.docs.package_copy import PackageCopy, blocks

PROGRAM = """
import datetime as dt
import json
import tidegate as tg

session = tg.Session(master="none")
start = dt.datetime(2024, 1, 1)
rows = [
    {"ts": start + dt.timedelta(seconds=second), "route": route}
    for second, route in enumerate("aabacaadddad")
]
source = tg.MemorySource(rows, time="ts")
source.end()
stream = session.stream(source, time="ts", name="rides")
counted = stream.window("8 seconds").group_by("route").agg(n=tg.count())

def sql(text):
    return session.sql("SELECT route, COUNT(*) AS n FROM rides [RANGE 8 SECONDS] " + text,
                       rides=stream)

def told(make):
    try:
        return str(make().columns)
    except tg.QueryError as error:
        return str(error)
    except tg.OptionError as error:
        return str(error)

query = sql("GROUP BY route HAVING n < 9 WITH LEAST 2")
sink = tg.sink.memory()
query.start(sink=sink, instances=2).wait()
print(json.dumps({
    "rows": [[r["route"], r["n"]] for r in sink.table().to_pylist()],
    "explain": query.explain(),
    "same": counted.having(tg.col("n") < 9).least(2).columns == query.columns,
    "beside": sql("GROUP BY route WITH LEAST 2 WITH PARTITIONER cam").explain(),
    "twice": told(lambda: counted.least(2).least(3)),
    "few": told(lambda: counted.least(1)),
    "no groups": told(lambda: stream.window("8 seconds").agg(n=tg.count()).least(2)),
    "no argument": told(lambda: counted.least()),
    "half": told(lambda: sql("GROUP BY route WITH LEAST")),
    "a slip": told(lambda: sql("GROUP BY route WITH LEEST 2")),
}))
"""


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> PackageCopy:
    (file,), (line,) = (blocks("A new clause", language) for language in ("python", "text"))
    copy = PackageCopy(tmp_path_factory.mktemp("clause"))
    copy.add_file("query/clause/least.py", file)
    copy.add_line("query/clause/registry.py", '    ("latency", "LatencyTarget"),\n', line)
    return copy


@pytest.fixture(scope="module")
def told(package: PackageCopy) -> dict[str, object]:
    found: dict[str, object] = package.printed(PROGRAM)
    return found


def test_it_touches_its_own_file_and_one_line(package: PackageCopy) -> None:
    touched = package.touched()
    assert list(touched) == ["query/clause/least.py", "query/clause/registry.py"]
    assert touched["query/clause/registry.py"] == 1


def test_it_leaves_out_small_groups(told: dict[str, object]) -> None:
    assert told["rows"] == [["a", 5], ["d", 3]]
    assert told["same"] is True
    assert "by route: n = count(*), #tuples = count(*), LEAST 2" in str(told["explain"])
    assert "LEAST 2, partitioner cam" in str(told["beside"])


def test_mistakes_with_it_are_told_like_others(told: dict[str, object]) -> None:
    said = {name: str(told[name]) for name in ("twice", "few", "no groups", "no argument", "half")}
    assert said == {
        "twice": "WITH LEAST 3: an aggregate has one WITH LEAST; got also LEAST 2. "
        "Leave one of them out.",
        "few": "WITH LEAST: must be 2 rows or more; got 1.",
        "no groups": "WITH LEAST 2: is for groups; got an aggregate without GROUP BY.",
        "no argument": "least: needs rows; got none. Write for example .least(5).",
        "half": "SQL line 1, column 83: expected a number; got the end of the statement.",
    }
    assert "or LEAST after WITH; got LEEST. Did you mean LEAST?" in str(told["a slip"])

"""The worked examples of CONTRIBUTING.md touch their own file and one line of a table each."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from tests.docs.package_copy import PackageCopy
from tests.docs.test_contributing import block, section

SOURCE = """
import datetime as dt, json
import tidegate as tg
from tidegate.errors import TidegateError

session = tg.Session(master="none")
start = dt.datetime(2024, 1, 1)
rows = [
    {"ts": start + dt.timedelta(seconds=i // 3), "route": route, "fare": float(i + 1)}
    for i, route in enumerate("aabacaadddad")
]
source = tg.MemorySource(rows, time="ts")
source.end()
rides = session.stream(source, time="ts", name="rides")

def run(query, **options):
    sink = tg.sink.memory()
    query.start(sink=sink, instances=2, batch_rows=5, **options).wait()
    return [[v for n, v in r.items() if "window" not in n] for r in sink.table().to_pylist()]

def sql(text):
    return session.sql(text, rides=rides)

"""
SUMS = "SELECT route, SUM(fare) AS s FROM rides [RANGE 2 SECONDS] GROUP BY route"


@dataclass(frozen=True)
class Example:
    """A section of the page, what it touches, and a program that prints what becomes of it.

    The line goes into the table after the line `after`; a table that does not find
    files by their names also imports it.
    """

    title: str
    file: str
    registry: str
    after: str
    program: str
    printed: object
    imports: str = ""


EXAMPLES = (
    Example(
        "A new aggregate function",
        "operate/aggregate/functions/geometric_mean.py",
        "operate/aggregate/registry.py",
        "TABLE = (\n",
        """print(json.dumps([[r, round(m, 3)] for r, m in run(sql(
            "SELECT route, GEOMEAN(fare) AS m FROM rides [RANGE 2 SECONDS] GROUP BY route"))]))""",
        [["a", 2.632], ["b", 3.0], ["c", 5.0], ["a", 8.775], ["d", 9.641]],
        "from tidegate.operate.aggregate.functions import geometric_mean\n",
    ),
    Example(
        "A new partitioner",
        "route/stripes.py",
        "route/registry.py",
        "PARTITIONERS: dict[str, type[Partitioner]] = {\n",
        f"""print(json.dumps(run(sql({SUMS!r}), partitioner="stripes")))""",
        [["a", 13.0], ["b", 3.0], ["c", 5.0], ["a", 18.0], ["d", 39.0]],
        "from tidegate.route.stripes import Stripes\n",
    ),
    Example(
        "A new window",
        "query/window/days.py",
        "query/window/registry.py",
        "_TABLE = (\n",
        """
def sql(text):
    return session.sql(f"SELECT SUM(fare) AS s FROM rides [{text}]", rides=rides)

def told(make):
    try:
        return str(make().columns)
    except TidegateError as error:
        return str(error)

keyed = rides.window(days=2).group_by("route").agg(q=tg.quantile("fare", 0.5))
assert run(keyed, partitioner="auto") == run(keyed)
assert run(keyed.within(error=0.1))[0] == ["a", 5.0, 5.0, 5.0, True]
assert run(rides.window(days=2).agg(s=tg.sum("fare"))) == run(sql("DAYS 2"))
over = session.sql(
    "SELECT SUM(s) AS s FROM (SELECT SUM(fare) AS s FROM rides [DAYS 1]) [DAYS 3]", rides=rides
)
print(json.dumps([
    run(sql("DAYS 2")),
    run(over),
    "aggregate over [RANGE 2 days] by nothing" in sql("DAYS 2").explain(),
    told(lambda: sql("DAYS 0")),
    told(lambda: rides.window(days=1, slide=2)),
]))
""",
        [
            [[78.0]],
            [[78.0]],
            True,
            "window: RANGE must be longer than zero; got 0 seconds.",
            "window slide: windows of days do not overlap; got 2.",
        ],
    ),
)


@pytest.fixture(params=EXAMPLES, ids=lambda example: example.title, scope="module")
def installed(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Example, PackageCopy]:
    """A copy of the package with an example of the page put into it, as a contributor would."""
    example: Example = request.param
    copy = PackageCopy(tmp_path_factory.mktemp("example"))
    page = section(example.title)
    copy.add_file(example.file, block(page, "python"))
    copy.add_line(example.registry, example.after, block(page, "text"))
    if example.imports:
        copy.add_line(example.registry, "from __future__ import annotations\n", example.imports)
    return example, copy


def test_it_touches_its_own_file_and_one_table(installed: tuple[Example, PackageCopy]) -> None:
    example, package = installed
    touched = package.touched()
    assert sorted(touched) == sorted([example.file, example.registry])
    assert touched[example.registry] == 1 + bool(example.imports)


def test_it_runs_in_the_package(installed: tuple[Example, PackageCopy]) -> None:
    example, package = installed
    assert package.printed(SOURCE + example.program) == example.printed

"""The index of tasks leads to each question of a first week within two clicks from the README.

The first click opens the index, the second the section: both must be there by name, and the section
must hold the query that answers.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from os.path import normpath
from pathlib import PurePosixPath

import pytest
from markdown.extensions.toc import slugify

from tests.docs.block import ROOT

DOCS = ROOT / "docs"
INDEX = "tasks.md"


@dataclass(frozen=True)
class Way:
    """What to click in the index, on the line of a task, and what the section there must show."""

    example: str  # in examples/first_week, which asks the question
    task: str  # how the line of the index begins
    click: str
    place: str
    example_shows: str
    page_shows: str


WEEK = (
    Way(
        "district_names",
        "to look names up in a table",
        "tables",
        "tables.md",
        "CREATE TABLE",
        "CREATE TABLE",
    ),
    Way(
        "first_calls",
        "to remove duplicates",
        "deduplication",
        "sql/over.md#deduplication",
        "KEEP FIRST WITHIN",
        "KEEP FIRST WITHIN",
    ),
    Way(
        "hashtags",
        "a row for each element of a list",
        "rows from lists",
        "sql/queries.md#rows-from-lists",
        "EXPLODE(",
        "EXPLODE(",
    ),
    Way(
        "hourly_revenue",
        "sums and counts by hour",
        "windows",
        "sql/windows.md",
        "[RANGE 1 HOUR]",
        "[RANGE 1 HOUR]",
    ),
    Way(
        "last_large_trade",
        "the newest value at the time of each row",
        "as-of joins",
        "sql/asof.md",
        "ASOF JOIN",
        "ASOF JOIN",
    ),
    Way(
        "late_shipments",
        "what has no partner",
        "outer, semi and anti joins",
        "sql/joins.md#outer-semi-and-anti-joins",
        "LEFT JOIN",
        "LEFT JOIN",
    ),
    Way(
        "local_days",
        "days, weeks or months of a time zone",
        "days of a time zone",
        "sql/windows.md#days-of-a-time-zone",
        "TIME ZONE 'America/New_York'",
        "TIME ZONE 'America/New_York'",
    ),
    Way(
        "moving_average",
        "running totals, moving averages",
        "`OVER`",
        "sql/over.md#running-and-moving-over",
        "ROWS 9 PRECEDING",
        "AVG(fare) OVER (PARTITION BY medallion ORDER BY ts ROWS 4 PRECEDING)",
    ),
    Way(
        "not_called_back",
        "what has no partner",
        "outer, semi and anti joins",
        "sql/joins.md#outer-semi-and-anti-joins",
        "ANTI JOIN",
        "ANTI JOIN",
    ),
    Way(
        "percentiles",
        "medians and percentiles",
        "all of them",
        "reference/aggregates.md",
        "PERCENTILE_CONT",
        "PERCENTILE_CONT(0.5) WITHIN GROUP",
    ),
    Way(
        "price_changes",
        "running totals, moving averages, the row before",
        "`OVER`",
        "sql/over.md#running-and-moving-over",
        "LAG(",
        "LAG(fare",
    ),
    Way(
        "running_total",
        "running totals",
        "`OVER`",
        "sql/over.md#running-and-moving-over",
        "UNBOUNDED PRECEDING",
        "SUM(fare) OVER (PARTITION BY medallion ORDER BY ts)",
    ),
    Way(
        "sessions",
        "sessions",
        "sessions",
        "sql/windows.md#sessions",
        "SESSION GAP",
        "[SESSION GAP 30 MINUTES]",
    ),
    Way(
        "top_callers",
        "the top k",
        "`LIMIT n BY`",
        "sql/select.md#the-first-rows-of-each-group",
        "LIMIT 3 BY",
        "LIMIT 3 BY",
    ),
    Way(
        "totals",
        "totals and subtotals",
        "`ROLLUP` and `CUBE`",
        "sql/aggregates.md#totals-beside-groups",
        "ROLLUP",
        "GROUP BY ROLLUP (",
    ),
)


def section(place: str) -> str:
    """The text of `page.md#heading` with its subsections, or of a page up to its first section."""
    page, _, anchor = place.partition("#")
    levels: list[tuple[int, str, list[str]]] = [(0, "", [])]
    fenced = False
    for line in (DOCS / page).read_text(encoding="utf-8").splitlines():
        fenced ^= line.startswith("```")
        heading = None if fenced else re.match(r"(#+) (.*)", line)
        if heading:
            levels.append((len(heading[1]), slugify(heading[2], "-"), []))
        levels[-1][2].append(line)
    if not anchor:
        return "\n".join(line for _, _, lines in levels[:2] for line in lines)
    (start,) = [i for i, (_, slug, _) in enumerate(levels) if slug == anchor]
    found = list(levels[start][2])
    for level, _, lines in levels[start + 1 :]:
        if level <= levels[start][0]:
            break
        found += lines
    return "\n".join(found)


def code(text: str) -> str:
    """The queries and commands of a text: its blocks, and what stands between back quotes."""
    blocks = re.findall(r"^```\w*\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    return "\n".join([*blocks, *re.findall(r"`([^`\n]+)`", text)])


def links(text: str, page: str) -> dict[str, str]:
    """The links of a text by what is clicked: `page.md`, or `page.md#heading`."""
    found = re.findall(r"\[((?:[^\]`]|`[^`]*`)+)\]\(([^)\s:]+)\)", text)
    return {t: normpath(PurePosixPath(page).parent / p) for t, p in found}


def lines_of(task: str) -> list[str]:
    """The lines of the index that begin with a task."""
    text = (DOCS / INDEX).read_text(encoding="utf-8")
    return [line for line in text.splitlines() if line.startswith(f"- **{task}")]


def test_the_questions_are_those_of_the_examples() -> None:
    examples = (ROOT / "examples" / "first_week").glob("*.sql")
    assert sorted(way.example for way in WEEK) == sorted(path.stem for path in examples)
    assert len(WEEK) == 15
    for way in WEEK:
        text = (ROOT / "examples" / "first_week" / f"{way.example}.sql").read_text(encoding="utf-8")
        assert way.example_shows in text, way.example


@pytest.mark.parametrize("page", ["README.md", "docs/index.md"])
def test_the_first_click_opens_the_index(page: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    assert links(text, page).get("I want to ...") == f"docs/{INDEX}"


@pytest.mark.parametrize("way", WEEK, ids=lambda way: way.example)
def test_the_second_click_opens_the_answer(way: Way) -> None:
    (line,) = lines_of(way.task)
    found = links(line, INDEX)
    assert found.get(way.click) == way.place, f"{way.click!r} is not to be clicked in {found}"
    assert way.page_shows in code(section(way.place)), way.place


def test_every_link_of_the_index_leads_to_a_section() -> None:
    places = links((DOCS / INDEX).read_text(encoding="utf-8"), INDEX).values()
    assert len(places) > 60
    for place in places:
        assert section(place).strip(), place

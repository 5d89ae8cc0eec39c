"""The remedies of refused queries: followed, each gives an answer; or the message says no way."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.cli.mistake import elsewhere, query
from tests.cli.mistake.answer import ANSWERS
from tests.cli.mistake.kind import Mistake
from tests.cli.mistake.remedy import EDITS, NO_WAY, ON_SPARK
from tests.cli.test_mistakes import ROWS, put
from tidegate.cli.main import invoke

CATALOGUE = {
    f"{table.__name__.rpartition('.')[2]}: {name}": mistake
    for table in (query, elsewhere)
    for name, mistake in table.MISTAKES.items()
}
MORE = {"rows.csv": "ts,a,b\n2024-01-01T00:00:01Z,1,2\n"}
RUN = ("run", "q.sql", "--master", "none", "--out", "out", "--format", "csv")
QUERY = re.compile(
    r"(SELECT|CREATE STREAM|INSERT INTO|FROM|GROUP BY|HAVING|LIMIT|QUANTILE|\[R)\b.*"
)


def corrected(name: str) -> str:
    """The query of a mistake after its remedy has been followed."""
    text, *others = EDITS[name]
    sql = CATALOGUE[name].sql
    if not text:
        return others[0]
    first, *rest = sql.split(text)
    assert len(rest) >= len(others), f"{text} is not in {sql}"
    others += [text] * (len(rest) - len(others))
    return first + "".join(other + piece for other, piece in zip(others, rest))


def answer(out: Path) -> str:
    """The rows of all outputs in a line, without the day and the parts of seconds."""
    rows = [row for f in sorted(out.rglob("*.csv")) for row in f.read_text().splitlines()[1:]]
    return "; ".join(rows).replace("2024-01-01 ", "").replace(".000000Z", "").replace('"', "")


def offered(mistake: Mistake) -> list[str]:
    """The pieces of queries in the remedy of a message: what follows Write, to its end."""
    remedies = re.findall(
        r"\b[Ww]rite (?:for example |an aggregate for each: )?(.+)", mistake.message
    )
    ends = r", or |, and |, which | in its place|: how |; and |; rows | to read it|, in Python"
    pieces = [re.split(ends, remedy)[0].rstrip(". ") for remedy in remedies]
    return [piece for piece in pieces if QUERY.match(piece)]


def test_every_refusal_is_in_one_list() -> None:
    listed = [*EDITS, *NO_WAY, *ON_SPARK]
    assert len(listed) == len(set(listed))
    assert set(listed) == set(CATALOGUE)
    assert len(NO_WAY) > 60
    assert len(EDITS) > 170


@pytest.mark.parametrize("name", NO_WAY)
def test_where_there_is_no_way_the_message_says_so_and_offers_no_query(name: str) -> None:
    message = CATALOGUE[name].message
    assert "There is no way yet" in message
    assert not offered(CATALOGUE[name])


@pytest.mark.parametrize("name", ON_SPARK)
def test_what_runs_on_spark_says_so(name: str) -> None:
    assert "Spark" in CATALOGUE[name].message


@pytest.mark.parametrize("name", EDITS)
def test_a_remedy_gives_what_was_asked_for(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    mistake = CATALOGUE[name]
    sql = corrected(name)
    put({"rides.csv": ROWS, **MORE, **mistake.files, "q.sql": sql})
    assert invoke([*RUN, *mistake.options]) == 0, capsys.readouterr()
    assert answer(tmp_path / "out") == ANSWERS[name]
    for piece in offered(mistake):
        pattern = ".*".join(re.escape(p.strip()) for p in piece.split("..."))
        assert re.search(pattern, sql, re.IGNORECASE), f"{piece} is not what was run: {sql}"


def test_queries_are_found_in_remedies() -> None:
    """Else the test above would look for nothing."""
    assert sum(bool(offered(mistake)) for mistake in CATALOGUE.values()) > 25

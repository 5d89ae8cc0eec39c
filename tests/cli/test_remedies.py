"""The remedies of refused queries: followed, each gives an answer; or the message says no way."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cli.mistake import answer as answers
from tests.cli.mistake import clause, elsewhere, keyed, query, remedy, table
from tests.cli.mistake.kind import Mistake, run_line
from tests.cli.mistake.remedy import NO_WAY, ON_SPARK
from tests.cli.test_mistakes import ROWS, put
from tidegate.cli.main import invoke
from tidegate.errors import NO_WAY as NO_WAY_YET
from tidegate.errors import TidegateError
from tidegate.sql.advice import foreign, refusal

CATALOGUE = {
    f"{module.__name__.rpartition('.')[2]}: {name}": mistake
    for module in (query, elsewhere, clause, table, keyed)
    for name, mistake in module.MISTAKES.items()
}
EDITS = remedy.EDITS | {f"table: {name}": edit for name, edit in table.EDITS.items()}
ANSWERS = answers.ANSWERS | {f"table: {name}": text for name, text in table.ANSWERS.items()}
MORE = {"rows.csv": "ts,a,b\n2024-01-01T00:00:01Z,1,2\n"}
SQL = Path(refusal.__file__).parent.parent
IN_PROGRAMS = ("text.py", "columns.py", "condition.py")
"""What a program or an option gives as text, and no script: expr("..."), schema="...", --where."""
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
    ends = r", (or|and|which|in Python)|; (and|rows|--out)|: how | in its place| to read it| if it "
    pieces = [re.split(ends, remedy, maxsplit=1)[0].rstrip(". ") for remedy in remedies]
    return [piece for piece in pieces if QUERY.match(piece)]


def test_every_refusal_is_in_one_list() -> None:
    listed = [*EDITS, *NO_WAY, *ON_SPARK]
    assert len(listed) == len(set(listed))
    assert set(listed) == set(CATALOGUE)
    assert len(NO_WAY) > 40
    assert len(EDITS) > 210


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
        pattern = ".*".join(re.escape(p.strip()) for p in re.split(r"\.\.\.|'uri'", piece))
        assert re.search(pattern, sql, re.IGNORECASE), f"{piece} is not what was run: {sql}"


def test_queries_are_found_in_remedies() -> None:
    """Else the test above would look for nothing."""
    assert sum(bool(offered(mistake)) for mistake in CATALOGUE.values()) > 25


def test_every_refusal_of_the_sql_is_in_the_catalogue(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each line that makes an error is reached by a mistake of the tables, or is listed here."""
    monkeypatch.chdir(tmp_path)
    reached: set[tuple[str, int]] = set()
    real = TidegateError.__init__

    def recorded(self: TidegateError, *args: Any, **kwargs: Any) -> None:
        for depth in (1, 2):
            frame = sys._getframe(depth)
            reached.add((frame.f_code.co_filename, frame.f_lineno))
        real(self, *args, **kwargs)

    monkeypatch.setattr(TidegateError, "__init__", recorded)
    for name, mistake in CATALOGUE.items():
        put({"rides.csv": ROWS, **mistake.files, "q.sql": mistake.sql})
        assert invoke(run_line(mistake.options)) == 2, name
    sites = [site for source in sorted(SQL.rglob("*.py")) for site in _sites(source)]
    lines = [(file, range(first, last + 1)) for file, first, last in sites]
    missed = [
        f"{Path(file).name} {n[0]}"
        for file, n in lines
        if not any((file, line) in reached for line in n)
    ]
    assert len(sites) > 55
    assert [m for m in missed if not m.startswith(IN_PROGRAMS)] == []


def test_every_entry_of_a_table_of_advice_has_no_way_or_is_in_the_catalogue() -> None:
    made = [*refusal.REFUSALS.values(), *(rule[-1] for _, rule in foreign.rules())]
    assert len(made) > 100
    ways = [r for r in made if r.remedy not in (NO_WAY_YET, refusal.PROCESS)]
    assert len(ways) > 50
    told = [mistake.message for mistake in CATALOGUE.values()]
    assert [r for r in ways if not any(f": {r.why}; got " in message for message in told)] == []


def _sites(source: Path) -> Iterator[tuple[str, int, int]]:
    """Where a file makes errors: the lines of each call."""
    for node in ast.walk(ast.parse(source.read_text())):
        if isinstance(node, ast.Call):
            name = getattr(node.func, "id", getattr(node.func, "attr", ""))
            if name in ("QueryError", "UnavailableError", "told"):
                yield str(source), node.lineno, node.end_lineno or node.lineno

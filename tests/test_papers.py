"""The pages beside the papers: every figure has a row, and every number of ours is in a result."""

from __future__ import annotations

import argparse
import ast
import importlib
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.docs.block import ROOT

ASKED = {
    "scalejoin": ["Figure", range(5, 9)],
    "stretch": ["Figure", range(3, 6), "Table", range(1, 3)],
    "streamcloud": ["Figure", range(14, 23), "Table", ["I"]],
    "join-model": ["Figure", range(4, 21)],
    "dissertation": [
        "Figure",
        [*range(12, 21), *range(28, 35), *range(37, 41), *range(45, 52), *range(53, 59)],
        "Table",
        [4, 9],
    ],
}


@pytest.fixture(scope="module")
def of() -> Iterator[Any]:
    """A module of benchmarks/, which import each other by their names alone."""
    sys.path.insert(0, str(ROOT / "benchmarks"))
    yield importlib.import_module
    sys.path.remove(str(ROOT / "benchmarks"))


def test_every_figure_and_table_of_an_experiment_has_a_row(of: Any) -> None:
    listed = of("paper_list")
    for key, asked in ASKED.items():
        names = [figure.name for figure in listed.document(key).figures]
        assert len(set(names)) == len(names)
        for kind, numbers in zip(asked[::2], asked[1::2], strict=True):
            there = {number for name in names for number in _numbers(name, kind)}
            assert {str(number) for number in numbers} <= there
        page = (ROOT / f"docs/papers/{key}.md").read_text(encoding="utf-8")
        assert [name for name in names if f"| [{name}](#" not in page] == []


def _numbers(name: str, kind: str) -> list[str]:
    """`Figures 4 to 6` are three, and `Figures 47a, 47b` is one twice."""
    if not name.startswith(kind):
        return []
    found = re.findall(r"\b(?:\d+|I)(?=[a-z]?\b)", name)
    if " to " in name and len(set(found)) == 2:
        return [str(number) for number in range(int(found[0]), int(found[1]) + 1)]
    return found


def test_every_row_reads_its_numbers_from_a_result(of: Any) -> None:
    listed = of("paper_list")
    done = [f for f in listed.figures().values() if f.kind != listed.NOT_DONE]
    assert {f.kind for f in done} == {listed.MEASURED, listed.SIMULATED}
    assert len(done) > 60
    for figure in done:
        assert figure.told
        assert figure.differs
        seen = "not seen" not in figure.told
        assert figure.compare is None or figure.ratio is not None or not seen


# What a sentence names: figures of a document, queries of a data set.
NAMED = re.compile(
    r"([Ff]igures?|[Tt]ables?|section|[Ee]quation|[Qq]uery) \d[\d.]*[a-z]?( \([a-e]\))?"
    r"((, | and | to )(\d+[a-z]?|\([a-e]\))(?![\d%]))*|\b[Aa]s \d+[a-z]\b|`[^`]*`"
)
COUNTS = dict(
    zip(
        "two three four five six seven eight nine ten eleven twelve sixteen twenty thirty forty "
        "fifty sixty seventy eighty ninety".split(),
        (*range(2, 13), 16, *range(20, 100, 10)),
        strict=True,
    )
)
TIMES = {"hundred": 100, "thousand": 1_000, "million": 1_000_000}


def numbers_in_words(text: str) -> set[float]:
    """Of `forty-seven thousand` 47,000; one is a word like others, and a hundred is a share."""
    word = "|".join([*COUNTS, "one", "half a", "a quarter", "a half"])
    found = set()
    for hit in re.finditer(rf"\b(({word})(?:-({word}))?)(?: (thousand|million))?\b", text):
        low = COUNTS.get(hit[3], 1 if hit[3] == "one" else 0)
        number = {"half a": 0.5, "a half": 0.5, "a quarter": 0.25, "one": 1}.get(hit[2])
        number = COUNTS[hit[2]] + low if number is None else number
        found.add(float(number * TIMES.get(hit[4], 1)))
    return found - {1.0}


def test_numbers_of_ours_are_read_and_not_typed(of: Any) -> None:
    """Digits that are published stand in double brackets; words may say what a path names."""
    listed, value = of("paper_list"), of("paper_value")
    rows = [(key, row) for key in listed.DOCUMENTS for row in listed._read(key)["figure"]]
    told = {f"{k}-{row['id']}": (row["ours"], row["differs"]) for k, row in rows if "ours" in row}
    told |= {f"headline {line.of}": (line.ours, line.why) for line in listed.headlines()}
    assert len(told) > 75
    typed, worded = {}, {}
    for id_, sentences in told.items():
        words = " ".join(NAMED.sub("", value.words_of(text)) for text in sentences)
        # AM-2 and p50 are names; digits that begin a word are a number that somebody has typed.
        if found := re.findall(r"(?<![\w-])\d+", words):
            typed[id_] = found
        holes = " ".join(hole[1] for hole in value._HOLE.finditer(sentences[0]))
        read = {float(number) for number in re.findall(r"\d+(?:\.\d+)?", holes.replace(",", ""))}
        read |= numbers_in_words(holes) | {100 * number for number in read if number < 1}
        if found := numbers_in_words(value.words_of(sentences[0])) - read:
            worded[id_] = found
    assert (typed, worded) == ({}, {})


def test_numbers_are_told_in_words(of: Any) -> None:
    value = of("paper_value")
    runs = {"made": {"n": 2, "all": {"8": {"n": 8}, "16": {"n": 16}, "1": {"n": 1}}, "k": 40}}
    said = "{n:some core}, {all/least/n:some core} to {all/most/n:word}, {k:word}, [[7]] theirs"
    assert value.told(said, "made", runs) == "two cores, one core to sixteen, 40, 7 theirs"
    assert value.words_of("{n} [[7 of 9]] here 3") == "  here 3"
    text = "ninety-nine of a hundred, forty-seven thousand, half a minute, a quarter million, one"
    assert numbers_in_words(text) == {99, 47_000, 0.5, 250_000}


def test_figures_that_are_not_done_say_why_and_nothing_else(of: Any) -> None:
    listed = of("paper_list")
    missing = [f for f in listed.figures().values() if f.kind == listed.NOT_DONE]
    assert all(f.because and not f.ours and not f.program for f in missing)
    assert len(missing) >= 4


def test_a_figure_whose_result_nobody_has_yet_is_not_done(
    of: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    listed = of("paper_list")
    done = listed.figures()["scalejoin-7a"]
    monkeypatch.setattr(listed, "is_there", lambda name: name != done.result)
    listed.document.cache_clear()
    found = listed.figures()["scalejoin-7a"]
    listed.document.cache_clear()
    assert (done.kind, found.kind, found.title) == (listed.MEASURED, listed.NOT_DONE, done.title)
    assert (found.ours, found.program, found.compare, found.told) == ("", "", None, "")
    assert f"`python {listed.programs()[done.program].command}`" in found.because
    for lacking in ("sustained-15-minutes", "sustained-5-minutes"):  # it reads both
        monkeypatch.setattr(listed, "is_there", lambda name, lacking=lacking: name != lacking)
        listed.document.cache_clear()
        assert listed.figures()["scalejoin-5"].kind == listed.NOT_DONE
    listed.document.cache_clear()


def test_a_row_whose_result_is_of_an_older_run_is_not_done(
    of: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    listed = of("paper_list")
    row = {"ours": "{n}", "differs": "", "result": "made", "needs": "experiments/section8-3"}
    monkeypatch.setattr(listed, "is_there", lambda name: name == "made")

    def values(path: str, result: str) -> list[int]:
        if path == "experiments/section8-3":
            raise KeyError(path)
        return [1]

    monkeypatch.setattr(listed, "values", values)
    assert [listed._is_run({**row, "needs": path}) for path in (row["needs"], "n")] == [False, True]
    assert not listed._is_run({**row, "ours": "{@other/n}", "needs": "n"})


def test_pages_are_what_the_program_makes(of: Any) -> None:
    """After new results: `python benchmarks/paper_pages.py`."""
    assert of("paper_pages").wrong() == []


def test_ours_is_drawn_beside_what_is_printed(of: Any) -> None:
    pages, listed = of("paper_pages"), of("paper_list")
    both = [figure for figure in listed.figures().values() if figure.both is not None]
    assert len(both) >= 25
    drawn = {name for name in pages.pages() if name.endswith("-beside.svg")}
    assert drawn == {f"{figure.id}-beside.svg" for figure in both}
    assert all((ROOT / "docs/papers" / name).exists() for name in drawn)
    svg = of("chart").Bars("A & B", "ms", [("published", 40.0), ("ours", 10.0)]).svg()
    widths = re.findall(r'width="([\d.]+)" height="20"', svg)
    assert float(widths[0]) == pytest.approx(4 * float(widths[1]), abs=0.4)
    assert "<title>A &amp; B</title>" in svg
    nothing = of("chart").Bars("no overshoot", "", [("published", 0.0), ("ours", 0.0)])
    assert 'width="0.0" height="20"' in nothing.svg()
    assert [of("chart").short(v) for v in (71.78, 0.0009, 24_780.0)] == ["71.8", "0.0009", "24,780"]


def test_a_missing_key_is_an_error_and_not_an_empty_cell(of: Any) -> None:
    value = of("paper_value")
    with pytest.raises(KeyError, match=r"stretch_model\.json: must have figure 4/pure"):
        value.value("figure 4/pure", "stretch_model")
    with pytest.raises(FileNotFoundError):
        value.value("figure 3", "no such result")


def test_what_a_run_did_not_see_is_told_and_no_number(of: Any) -> None:
    value = of("paper_value")
    runs = {"made": {"a": {"settling_s": None}, "b": {"settling_s": 2.44}}}
    told = "settled: {a/settling_s:.1f s}, {b/settling_s:.1f s}, at most {max */settling_s:.0f s}"
    assert value.told(told, "made", runs) == "settled: not seen, 2.4 s, at most not seen"
    assert value.value("a/settling_s over b/settling_s", "made", runs) is None
    runs["made"]["a"] = {"settling_s": float("inf")}
    assert value.told("{max */settling_s:.0f} ms", "made", runs) == "not seen ms"
    tries = {"tries": {"1": {"best": {"rate": 20}}, "16": {"best": None}}}
    assert value.values("*/best/rate", "tries", tries) == [20, None]


def test_every_result_is_noted_with_what_it_was_measured_with(of: Any) -> None:
    """By `measure.write_report`: a result that was changed by hand is found here."""
    index = of("paper_index")
    there = [name for name in index.measured() if index.result_file(name).exists()]
    assert sorted(index.written()) == sorted(there)
    noted = {name: entry["result"] for name, entry in index.written().items()}
    assert noted == {name: index.result_digest(name) for name in noted}
    paths = {path for measures in index.measured().values() for path in measures}
    assert [path for path in sorted(paths) if not (ROOT / path).exists()] == []


def test_a_result_says_when_and_where_it_was_measured(
    of: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    measure = of("measure")
    monkeypatch.setattr(measure, "RESULTS", tmp_path)
    measure.write_report("made", {"rows": 1})
    made = json.loads((tmp_path / "made.json").read_text())
    assert re.fullmatch(r"20\d\d-\d\d-\d\d \d\d:\d\d UTC", made["date"])
    assert made["commit"] == measure.commit()
    assert made["cpu"]
    assert made["versions"]["tidegate"]
    info = tmp_path / "cpuinfo"
    info.write_text("processor : 0\nmodel name\t: Some CPU @ 2 GHz\nmodel name : x\n")
    assert measure.cpu_model(info) == "Some CPU @ 2 GHz"
    assert measure.cpu_model(tmp_path / "none")
    told = of("paper_pages")._origin
    assert told("made", made).startswith(f"(date: {made['date']}; processor: {made['cpu']}; ")
    assert told("made", {}) == "(date: unknown; processor: unknown; commit: unknown)"


def test_what_is_measured_is_known_by_its_code(of: Any, tmp_path: Path) -> None:
    digest = of("paper_index").modules_digest
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "x.py").write_text("1")
    (tmp_path / "b.py").write_text("2")
    before = digest(["a", "b.py"], tmp_path)
    assert before == digest(["a", "b.py"], tmp_path)
    assert digest(["gone"], tmp_path) != before
    (tmp_path / "a" / "x.py").write_text("3")
    assert before != digest(["a", "b.py"], tmp_path)


def test_a_module_that_moves_makes_no_result_stale(of: Any, tmp_path: Path) -> None:
    digest = of("paper_index").modules_digest
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "x.py").write_text("from a.y import f\nf()")
    (tmp_path / "a" / "y.py").write_text("def f():\n    import json\n    return json.loads('1')")
    before = digest(["a"], tmp_path)
    shelf = tmp_path / "a" / "b"
    shelf.mkdir()
    (shelf / "__init__.py").write_text('"A shelf."')
    (tmp_path / "a" / "y.py").rename(shelf / "z.py")
    (tmp_path / "a" / "x.py").write_text("from a.b.z import f\nf()")
    assert digest(["a"], tmp_path) == digest(["a/x.py", "a/b", "a/b/z.py"], tmp_path) == before
    assert digest(["a/x.py"], tmp_path) != before
    (tmp_path / "a" / "w.py").write_text("from a.b.z import f\nf()")
    assert digest(["a"], tmp_path) != before


CODE = """
LIMIT = 3

class Window:
    def close(self) -> None:
        self.rows = LIMIT
"""

SAID_OTHERWISE = """
'''A module.'''
LIMIT = 3
'''What a constant is for.'''


class Window:  # a comment
    "Windows."

    def close(self) -> None:
        "Closes."
        self.rows = (
            LIMIT)
"""


def test_docstrings_comments_and_layout_make_no_result_stale(of: Any) -> None:
    digest = of("paper_index").code_digest
    assert digest(CODE) == digest(SAID_OTHERWISE)
    changes = {"= 3": "= 4", "LIMIT =": "LIMITS =", "= LIMIT": "= None", "close": "end"}
    changed = {digest(CODE.replace(*change)) for change in changes.items()}
    texts = {digest(f"x = {text}") for text in ("'a'", "'b'", "b'a'", "None", "0", "f'{a}'")}
    assert len(changed | texts | {digest(CODE)}) == 1 + len(changes) + 6


class Parsed(Exception):
    """A program has accepted its arguments."""


def test_programs_accept_their_command_lines(of: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    parse, checked = argparse.ArgumentParser.parse_args, []

    def only_parse(self: argparse.ArgumentParser, *args: Any, **kwargs: Any) -> None:
        parse(self, *args, **kwargs)
        raise Parsed

    for program in of("paper_list").programs().values():
        file, *arguments = program.arguments
        module = of(Path(file).stem)
        assert (ROOT / file).samefile(module.__file__)
        assert callable(module.main)
        if arguments:
            monkeypatch.setattr(argparse.ArgumentParser, "parse_args", only_parse)
            monkeypatch.setattr(sys, "argv", program.arguments)
            with pytest.raises(Parsed):
                module.main()
            checked.append(program.name)
    assert len(checked) >= 12


def _is_parsed_first(program: Path) -> bool:
    """Whether `main` begins with a parser, so that it can be called with --help."""
    body = ast.parse(program.read_text(encoding="utf-8")).body
    (main,) = (one for one in body if isinstance(one, ast.FunctionDef) and one.name == "main")
    first = next(one for one in main.body if not isinstance(one, ast.Import | ast.ImportFrom))
    return "parser" in ast.unparse(first).lower()


def test_programs_answer_help_and_run_nothing(
    of: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    files = {program.arguments[0] for program in of("paper_list").programs().values()}
    files |= {f"benchmarks/{name}.py" for name in ("tables", "paper_pages", "peers")}
    assert [file for file in sorted(files) if not _is_parsed_first(ROOT / file)] == []
    for file in sorted(files):
        module = of(Path(file).stem)
        monkeypatch.setattr(sys, "argv", [file, "--help"])
        with pytest.raises(SystemExit) as ended:
            module.main()
        assert ended.value.code == 0, file
        assert capsys.readouterr().out.startswith("usage: ")


def test_programs_run_once_and_again_where_they_were_started_anew(
    of: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    runs, listed = of("paper_runs"), of("paper_list")
    results = tmp_path / "results"
    monkeypatch.setenv("TIDEGATE_BENCH_RESULTS", str(results))
    rates, model, wrong = (
        listed.Program(name, f"benchmarks/{command}", (name,), 0.1, (), "", 0.0)
        for name, command in (
            ("sample_rates", "sample_rates.py --rows 200"),
            ("stretch_model", "stretch_model.py"),
            ("wrong", "sample_rates.py --no-such-option"),
        )
    )
    assert runs.run_all([rates, wrong, model], tmp_path / "at", results) == ["wrong"]
    assert (
        "[2/3] about 0 minutes left: benchmarks/sample_rates.py --no-such" in capfd.readouterr().out
    )
    first = {file.name: file.stat().st_mtime_ns for file in results.iterdir()}
    assert sorted(first) == ["sample_rates.json", "stretch_model.json"]
    assert runs.run_all([rates, model], tmp_path / "at", results) == []
    (tmp_path / "at" / "sample_rates").touch()  # as where it was interrupted
    assert [runs.is_done(p, tmp_path / "at", results) for p in (rates, model)] == [False, True]
    assert {file.name: file.stat().st_mtime_ns for file in results.iterdir()} == first


def test_programs_are_chosen_by_cores_and_by_figures(of: Any) -> None:
    runs = of("paper_runs")
    names = {cores: {p.name for p in runs.chosen(cores, [])} for cores in (2, 16)}
    assert "sustained" in names[16]
    assert names[2].isdisjoint(names[16])
    second = {
        "stretch-5": {"sustained", "reconfigure", "physical_streams"},
        "dissertation-34": {"concept_drift", "concept_drift_real"},
        "scalejoin-5": {
            "physical_streams",
            *("sustained", "sustained_5_minutes", "sustained_15_minutes"),
        },
        "scalejoin-kernel": {"join_scan", "join_scan_kernel"},
        "dissertation-12": {"partition_engine", "partitioners"},
    }
    found = {asked: {p.name for p in runs.chosen(2, [asked])} for asked in second}
    assert found == second
    with pytest.raises(SystemExit, match="--only: must name figures with a program"):
        runs.chosen(2, ["stretch-99"])

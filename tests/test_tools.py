"""The checks in tools/ themselves: they find what they are for."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

from tests.conftest import TOGETHER

ROOT = Path(__file__).parents[1]
SILENT = {
    "nothing": "def test_x():\n    run()",
    "a helper that asserts nothing": "def run(): ...\ndef test_x():\n    run()",
    "one that calls itself": "def test_x():\n    test_x()",
    "a fixture that asserts nothing": "def place(): ...\ndef test_x(place):\n    place()",
}
TELLING = {
    "an assert": "def test_x():\n    assert run()",
    "an error": "def test_x():\n    with pytest.raises(ValueError):\n        run()",
    "a helper": "def check():\n    assert run()\ndef test_x():\n    check()",
    "a helper of a helper": "def a():\n    assert run()\ndef b():\n    a()\ndef test_x():\n    b()",
    "a method": "class Site:\n    def end(self): assert run()\ndef test_x(site):\n    site.end()",
    "a fixture": "def place():\n    yield 1\n    assert run()\ndef test_x(place):\n    run(place)",
}


def silent(text: str, folder: Path) -> int:
    """How many tests of a module are found to assert nothing."""
    tool = runpy.run_path(str(ROOT / "tools" / "check_tests.py"))
    path = folder / "test_one.py"
    path.write_text(text, encoding="utf-8")
    tool["Suite"].__init__.__globals__["ROOT"] = folder
    return len(list(tool["Suite"]([path]).silent()))


def test_tests_that_run_together_are_there() -> None:
    for start in TOGETHER:
        assert any((ROOT / "tests").glob(f"{start}*")), start


def test_every_mutant_can_still_be_made() -> None:
    """Their texts are there exactly once, so that the list does not rot while the code changes."""
    tool = runpy.run_path(str(ROOT / "tools" / "mutate.py"))
    mutants = tool["MUTANTS"]
    assert len(mutants) >= 60
    assert len({m.name for m in mutants}) == len(mutants)
    assert [f"{m.name}: {p}" for m in mutants if (p := tool["problem"](m)) is not None] == []


@pytest.mark.parametrize("kind", SILENT)
def test_tests_that_assert_nothing_are_found(kind: str, tmp_path: Path) -> None:
    assert silent(SILENT[kind], tmp_path) == 1


@pytest.mark.parametrize("kind", TELLING)
def test_tests_that_assert_something_are_not(kind: str, tmp_path: Path) -> None:
    assert silent(TELLING[kind], tmp_path) == 0


SHAPES = {
    "a class name that another module has": ("class Gate: ...\n", "class Gate: ...\n"),
    "a long function": ("def run():\n" + "    pass\n" * 80, ""),
    "a long file": ("x = 1\n" * 451, ""),
}


@pytest.mark.parametrize("kind", SHAPES)
def test_what_makes_code_hard_to_read_is_found(kind: str, tmp_path: Path) -> None:
    problems = runpy.run_path(str(ROOT / "tools" / "check_shape.py"))["problems"]
    problems.__globals__["ROOT"] = tmp_path
    paths = [tmp_path / "one.py", tmp_path / "two.py"]
    for path, text in zip(paths, SHAPES[kind], strict=True):
        path.write_text(text, encoding="utf-8")
    assert len(list(problems(paths))) == 1


def test_a_folder_with_too_many_modules_is_found(tmp_path: Path) -> None:
    problems = runpy.run_path(str(ROOT / "tools" / "check_shape.py"))["problems"]
    problems.__globals__["ROOT"] = tmp_path
    paths = [tmp_path / f"{name}.py" for name in ("__init__", *range(26))]
    for path in paths:
        path.touch()
    assert list(problems(paths[:-1])) == []
    assert len(list(problems(paths))) == 1


@pytest.mark.parametrize(
    ("text", "new"),
    [
        ("the watermrak of a query", ["watermrak"]),
        ("one\n\n```sql\nSELECT qurey\n```\n\nand `a_qurey` of the qurey", ["qurey"]),
        ("[the query](qurey.md#qurey) at https://qurey.org/qurey", []),
        ("The query isn't Qurey or q.qurey or qurey/", []),
    ],
)
def test_words_that_no_page_had_are_found(text: str, new: list[str], tmp_path: Path) -> None:
    unknown = runpy.run_path(str(ROOT / "tools" / "check_words.py"))["unknown"]
    (tmp_path / "page.md").write_text(text, encoding="utf-8")
    known = {"the", "query", "one", "and", "isn't"}
    assert [line.rpartition(" ")[2] for line in unknown(tmp_path, known)] == new


def test_every_compiled_loop_is_compiled_before_the_tests() -> None:
    """A module of loops that is forgotten there is compiled by every worker of the tests."""
    tool = runpy.run_path(str(ROOT / "tools" / "compile_loops.py"))
    named = {module for module, _ in tool["loops"]()}
    files = (ROOT / "src").rglob("*_loop.py")
    assert named == {".".join(f.relative_to(ROOT / "src").with_suffix("").parts) for f in files}

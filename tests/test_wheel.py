"""The wheel and the source archive: all that belongs in them, and what they say of themselves."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tarfile
import tomllib
import zipfile
from email.message import Message
from email.parser import Parser
from pathlib import Path

import pytest
from hatchling.builders.sdist import SdistBuilder
from hatchling.builders.wheel import WheelBuilder
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from pathspec import GitIgnoreSpec

import tidegate

ROOT = Path(__file__).parent.parent


SOURCE = "https://github.com/tidegate/tidegate"


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> zipfile.ZipFile:
    folder = tmp_path_factory.mktemp("wheel")
    (made,) = WheelBuilder(str(ROOT)).build(directory=str(folder), versions=["standard"])
    return zipfile.ZipFile(made)


def test_all_files_of_the_package_are_in_it(wheel: zipfile.ZipFile) -> None:
    source = ROOT / "src"
    files = [p for p in source.rglob("*") if p.is_file() and "__pycache__" not in p.parts]
    expected = {str(p.relative_to(source)) for p in files}
    assert len(expected) > 400
    inside = {n for n in wheel.namelist() if ".dist-info/" not in n}
    assert inside == expected
    assert "tidegate/py.typed" in inside


def test_the_source_archive_has_all_files_of_the_project(tmp_path: Path) -> None:
    """Its tests read tools, benchmarks and pages: whoever unpacks it can run them."""
    (made,) = SdistBuilder(str(ROOT)).build(directory=str(tmp_path), versions=["standard"])
    with tarfile.open(made) as archive:
        inside = {name.partition("/")[2] for name in archive.getnames()} - {"PKG-INFO"}
    ignored = GitIgnoreSpec.from_lines([".git", *(ROOT / ".gitignore").read_text().splitlines()])
    expected = set()
    for folder, folders, names in os.walk(ROOT):
        place = Path(folder).relative_to(ROOT)
        folders[:] = [f for f in folders if not ignored.match_file(f"{place / f}/")]
        expected |= {str(place / n) for n in names if not ignored.match_file(str(place / n))}
    assert len(expected) > 1_000
    assert inside == expected - {"PKG-INFO"}


def metadata(wheel: zipfile.ZipFile) -> Message:
    (name,) = [n for n in wheel.namelist() if n.endswith(".dist-info/METADATA")]
    return Parser().parsestr(wheel.read(name).decode())


def test_the_page_of_the_package_leads_to_files_that_are_there(wheel: zipfile.ZipFile) -> None:
    """An index of packages shows the README, where no path of the repository leads anywhere."""
    said = metadata(wheel)
    named = dict(text.split(", ") for text in said.get_all("Project-URL", []))
    assert {*named} >= {"Homepage", "Documentation", "Source", "Issues", "Changelog"}
    assert named["Source"] == SOURCE
    shown = re.findall(r"(!?)\[[^\]]*\]\(([^)\s]+)\)", str(said.get_payload()))
    assert len(shown) > 60
    assert [target for _, target in shown if not target.startswith("https://")] == []
    ours = 0
    for picture, target in [*shown, *(("", target) for target in named.values())]:
        found = re.fullmatch(rf"{SOURCE}/(blob|raw)/main/([^#]+)(?:#.*)?", target)
        if found:
            assert found[1] == ("raw" if picture else "blob"), target
            assert (ROOT / found[2]).exists(), target
            ours += 1
        else:
            assert not target.startswith(SOURCE) or target in named.values(), target
    assert ours > 50


def test_it_says_what_it_is(wheel: zipfile.ZipFile) -> None:
    said = metadata(wheel)
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert said["Name"] == "tidegate"
    assert said["Version"] == tidegate.__version__
    assert said["Summary"] == project["description"]
    assert said["Requires-Python"] == "<3.14,>=3.11"
    assert said["License-Expression"] == "Apache-2.0"
    assert said["Description-Content-Type"] == "text/markdown"
    assert "pip install" in said.get_payload()
    assert {"Programming Language :: Python :: 3.11", "Typing :: Typed"} <= set(
        said.get_all("Classifier", [])
    )
    required = [r for r in said.get_all("Requires-Dist", []) if "extra ==" not in r]
    names = {re.split(r"[<>=!\[ ]", r)[0] for r in required}
    assert {"pyspark", "pyarrow", "sqlglot", "click", "rich"} <= names
    assert len(names) == len(project["dependencies"])


def test_it_brings_the_command_and_the_licence(wheel: zipfile.ZipFile) -> None:
    names = {n.partition(".dist-info/")[2]: n for n in wheel.namelist() if ".dist-info/" in n}
    assert "tidegate = tidegate.cli.main:main" in wheel.read(names["entry_points.txt"]).decode()
    assert wheel.read(names["licenses/LICENSE"]) == (ROOT / "LICENSE").read_bytes()


def test_the_versions_of_python_are_the_same_everywhere() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    first, last = map(int, re.findall(r"3\.(\d+)", project["requires-python"]))
    named = [f"3.{minor}" for minor in range(first, last)]
    of = "Programming Language :: Python :: 3."
    assert [c[len(of) - 2 :] for c in project["classifiers"] if c.startswith(of)] == named
    setup = (ROOT / "tools" / "setup.sh").read_text()
    assert f"(3, {first}) <= sys.version_info < (3, {last})" in setup
    text = f"Python {', '.join(named[:-1])} or {named[-1]}"
    assert text in setup
    assert f"You need {text} on Linux" in (ROOT / "README.md").read_text()


@pytest.mark.parametrize("version", ["Python 3.10.13", "Python 3.14.0"])
def test_setup_refuses_other_versions_with_one_sentence(version: str, tmp_path: Path) -> None:
    (tmp_path / "tools").mkdir()
    shutil.copy(ROOT / "tools" / "setup.sh", tmp_path / "tools")
    python = tmp_path / "python"
    python.write_text(f'#!/bin/sh\n[ "$1" = --version ] && echo {version} || exit 1\n')
    python.chmod(0o755)
    said = subprocess.run(
        [tmp_path / "tools" / "setup.sh"],
        env={**os.environ, "PYTHON": str(python), "LOCKED": ""},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (said.returncode, said.stdout) == (2, "")
    assert said.stderr.startswith(
        f"Python: Tidegate needs Python 3.11, 3.12 or 3.13; got {version}."
    )
    assert not (tmp_path / ".venv").exists()


def test_the_lock_fits_the_ranges() -> None:
    """`make setup` installs what is locked, whatever the ranges say; `make lock` resolves anew."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    lock = (ROOT / "requirements.lock").read_text()
    locked: dict[str, list[str]] = {}
    for name, version in re.findall(r"^([\w.-]+)==(\S+)", lock, re.MULTILINE):
        locked.setdefault(canonicalize_name(name), []).append(version)
    groups = [project["dependencies"], *project["optional-dependencies"].values()]
    ranges = [text for group in groups for text in group if not text.startswith("tidegate[")]
    wanted = [Requirement(text) for text in ranges]
    assert len(wanted) > 20
    for of in wanted:
        found = locked.get(canonicalize_name(of.name), [])
        fits = bool(found) and all(of.specifier.contains(version) for version in found)
        assert fits, f"there must be {of} in requirements.lock; got {found}. Run `make lock`."

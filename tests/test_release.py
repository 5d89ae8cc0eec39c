"""What a release is made of: its man pages, its bill of materials, and the workflow of the host."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
import yaml

from tidegate.cli.main import COMMANDS, invoke
from tidegate.version import __version__

ROOT = Path(__file__).parent.parent


def test_there_is_a_man_page_for_each_command_with_all_that_its_help_says(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from tools.man import write

    assert write(tmp_path) > len(COMMANDS)
    for name in COMMANDS:
        page = (tmp_path / f"tidegate-{name}.1").read_text(encoding="utf-8").replace("\\-", "-")
        assert page.startswith(f'.TH "TIDEGATE-{name.upper()}" 1')
        assert invoke([name, "--help"]) == 0
        options = re.findall(r"^ +(?:-\w, )?(--[\w-]+)", capsys.readouterr().out, re.MULTILINE)
        assert options
        assert [o for o in options if o not in page] == []


def test_no_sentence_of_a_man_page_is_broken_by_an_indented_line(tmp_path: Path) -> None:
    """troff starts a line of its own where a line begins with a blank, except in `.nf`."""
    from tools.man import paragraphs, write

    write(tmp_path)
    for path in tmp_path.iterdir():
        text = path.read_text(encoding="utf-8")
        about = text.partition(".SH DESCRIPTION\n")[2].partition("\n.SH ")[0]
        flowing = re.sub(r"^\.nf$.*?^\.fi$", "", about, flags=re.MULTILINE | re.DOTALL)
        assert flowing.strip(), path.name
        assert [line for line in flowing.splitlines() if line[:1].isspace()] == [], path.name
    help_text = "One\n    two.\n\n    Three\n\n    \b\n    a\n      b\n\f\nnot shown"
    assert [*paragraphs(help_text)] == ["One\ntwo.", "Three", ".nf\na\n  b\n.fi"]


def test_the_workflow_does_what_ci_does_and_tries_each_python() -> None:
    workflow = (ROOT / ".github" / "workflows" / "ci.yml").read_text(encoding="utf-8")
    jobs = yaml.safe_load(workflow)["jobs"]
    assert {"run": ".ci/run"} in jobs["ci"]["steps"]
    assert {"run": "make try-wheel"} in jobs["wheel"]["steps"]
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    classified = [c.rpartition(" ")[2] for c in project["classifiers"] if ":: 3." in c]
    assert jobs["wheel"]["strategy"]["matrix"]["python"] == classified


def test_a_tag_is_a_release_only_with_its_version_and_its_changelog() -> None:
    from tools.check_tag import main, problems

    workflow = (ROOT / ".github" / "workflows" / "release.yml").read_text(encoding="utf-8")
    steps = [step.get("run", "") for step in yaml.safe_load(workflow)["jobs"]["build"]["steps"]]
    assert 'python tools/check_tag.py "$GITHUB_REF_NAME"' in steps
    assert ".ci/run" in steps
    assert main([f"v{__version__}"]) == 0
    assert main(["v0.0.9"]) == 1
    text = "# Changelog\n\n## 1.2.0 (2026-01-31)\n\n## 1.1.0 (2025-12-01)\n"
    assert [*problems("v1.2.0", "1.2.0", text)] == []
    assert len([*problems("1.2.0", "1.2.0", text)]) == 1
    assert len([*problems("v1.1.0", "1.1.0", text)]) == 1
    assert len([*problems("v1.3.0", "1.3.0", "## 1.3.0 (not released)")]) == 1


def test_every_change_has_a_reader_and_what_is_delicate_a_second_one() -> None:
    text = (ROOT / ".github" / "CODEOWNERS").read_text(encoding="utf-8")
    lines = [line.split() for line in text.splitlines() if line and line[0] != "#"]
    assert lines[0] == ["*", "@tidegate/maintainers"]
    assert len(lines) > 3
    for path, *owners in lines[1:]:
        place = ROOT / path.strip("/")
        assert place.is_dir() if path.endswith("/") else place.is_file(), path
        assert len(owners) == 2, path
        assert all(owner.startswith("@tidegate/") for owner in owners)


def test_the_targets_of_a_release_are_there() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    phony = re.search(r"^\.PHONY:((?:.*\\\n)*.*)", makefile, re.MULTILINE)
    assert phony is not None
    for target in ("wheel", "try-wheel", "try-sdist", "sbom", "man"):
        assert re.search(rf"^{target}: .*## ", makefile, re.MULTILINE), target
        assert target in phony[1].split()

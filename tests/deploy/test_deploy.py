"""The files for containers, systemd, cron, Airflow and Kubernetes say what the command line takes.

No engine is started: each file is parsed, its commands are given to the parser of the command
line, and what can run here of the image's steps is run.
"""

from __future__ import annotations

import ast
import configparser
import json
import re
import shlex
import subprocess
from pathlib import Path
from typing import Any

import click
import pytest
import yaml
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet

from tidegate.cli.exit_code import EXIT_MISTAKE
from tidegate.cli.line import lines_as_text
from tidegate.cli.main import commands
from tidegate.cli.stop import EXIT_STOPPED
from tidegate.execute.java import OLDEST

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"


def parsed(words: list[str]) -> dict[str, Any]:
    """The options of a command line after `tidegate`, as its command gets them; runs nothing."""
    group = click.Context(commands, info_name="tidegate")
    command = commands.get_command(group, words[0])
    assert command is not None
    with lines_as_text():  # --log-format acts at once
        return dict(command.make_context(words[0], list(words[1:]), group).params)


def container() -> list[tuple[str, str]]:
    """The instructions of the Containerfile in order, each with what follows it."""
    text = re.sub(r"\\\n\s*", "", (DEPLOY / "Containerfile").read_text())
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    return [(line.split(" ", 1)[0], line.split(" ", 1)[1]) for line in lines]


def of(instruction: str) -> list[str]:
    return [rest for name, rest in container() if name == instruction]


def documents() -> dict[str, Any]:
    found = yaml.safe_load_all((DEPLOY / "kubernetes.yaml").read_text())
    return {document["kind"]: document for document in found}


def test_the_image_has_a_python_and_a_java_that_are_supported() -> None:
    project = (ROOT / "pyproject.toml").read_text()
    supported = re.search(r'requires-python = "([^"]+)"', project)
    assert supported is not None
    bases = [base.split()[0] for base in of("FROM")]
    assert len(bases) == 2
    assert len(set(bases)) == 1  # compiled files of the first stage fit the second
    version = re.match(r"python:(\d+\.\d+)-slim-bookworm$", bases[0])
    assert version is not None
    assert SpecifierSet(supported[1]).contains(version[1])
    assert f"openjdk-{OLDEST}-jre-headless" in of("RUN")[-1]


def test_the_image_runs_the_command_as_a_user_of_its_own() -> None:
    (user,) = of("USER")
    assert f"--uid {user} " in of("RUN")[-1]
    assert int(user) >= 10_000
    (entry,) = of("ENTRYPOINT")
    assert json.loads(entry) == ["tini", "--", "tidegate"]
    assert {"tini", "procps"} <= set(of("RUN")[-1].split())
    assert of("STOPSIGNAL") == ["SIGTERM"]


def test_all_that_is_copied_is_there_and_each_step_is_a_command() -> None:
    copied = [words.split()[:-1] for words in of("COPY") if not words.startswith("--from")]
    assert [name for names in copied for name in names if not (ROOT / name).exists()] == []
    steps = of("RUN")
    assert len(steps) == 4
    for step in steps:
        assert subprocess.run(["sh", "-n", "-c", step], check=False).returncode == 0


def test_the_image_takes_the_locked_version_of_each_dependency(tmp_path: Path) -> None:
    step = of("RUN")[0]
    assert step.startswith("sed ")
    locked = tmp_path / "requirements.lock"
    locked.write_bytes((ROOT / "requirements.lock").read_bytes())
    subprocess.run(["sh", "-c", step], cwd=tmp_path, check=True)
    lines = (tmp_path / "constraints.txt").read_text().splitlines()
    found = [Requirement(line) for line in lines]
    assert all(str(r.specifier).startswith("==") for r in found)
    assert {"pyspark", "pyarrow", "confluent-kafka", "psycopg", "deltalake"} <= {
        r.name for r in found
    }
    extras = of("ARG")[0].removeprefix("EXTRAS=").split(",")
    project = (ROOT / "pyproject.toml").read_text()
    assert [extra for extra in extras if not re.search(rf"^{extra} = \[", project, re.M)] == []


def test_the_unit_restarts_failures_and_nothing_else() -> None:
    unit = configparser.ConfigParser(interpolation=None, strict=True)
    unit.optionxform = str  # type: ignore[assignment, method-assign]
    unit.read(DEPLOY / "tidegate@.service")
    service = unit["Service"]
    assert service["Restart"] == "on-failure"
    assert int(service["RestartPreventExitStatus"]) == EXIT_MISTAKE
    assert int(service["SuccessExitStatus"]) == EXIT_STOPPED
    assert service["KillMode"] == "mixed"  # else Spark gets the signal too, within a batch
    words = shlex.split(service["ExecStart"])
    assert words.pop() == "$TIDEGATE_OPTIONS"
    options = parsed(words[1:])
    assert options["follow"]
    state = service["StateDirectory"]
    assert options["checkpoint"].startswith(f"/var/lib/{state}/")


def test_the_crontab_takes_what_is_new_one_run_at_a_time() -> None:
    lines = (DEPLOY / "crontab").read_text().splitlines()
    (line,) = [line for line in lines if line.startswith("*")]
    words = shlex.split(line)[5:]
    assert words[1:3] == ["flock", "--nonblock"]
    options = parsed(words[words.index("/opt/tidegate/bin/tidegate") + 1 :])
    assert options["available_now"]


def test_the_dag_takes_what_is_new_one_run_at_a_time() -> None:
    tree = ast.parse((DEPLOY / "airflow_dag.py").read_text())
    assigned = {
        node.targets[0].id: ast.literal_eval(node.value)
        for node in tree.body
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name)
    }
    options = parsed(shlex.split(assigned["RUN"])[1:])
    assert options["available_now"]
    calls = {n.func.id: n for n in ast.walk(tree) if isinstance(n, ast.Call) and _named(n.func)}
    given = {k.arg: ast.unparse(k.value) for k in calls["DAG"].keywords}
    assert (given["max_active_runs"], given["catchup"]) == ("1", "False")
    command = {k.arg: ast.unparse(k.value) for k in calls["BashOperator"].keywords}
    assert command["bash_command"] == "f'exec {RUN}'"


def _named(func: ast.expr) -> bool:
    return isinstance(func, ast.Name)


@pytest.mark.parametrize(("kind", "mode"), [("Deployment", "follow"), ("CronJob", "available_now")])
def test_the_pods_are_run_as_the_image_expects(kind: str, mode: str) -> None:
    spec = documents()[kind]["spec"]
    pod = (spec if kind == "Deployment" else spec["jobTemplate"]["spec"])["template"]["spec"]
    (run,) = pod["containers"]
    options = parsed(run["args"])
    assert options[mode]
    assert pod["securityContext"]["runAsUser"] == int(of("USER")[0])
    assert pod["securityContext"]["runAsNonRoot"]
    assert pod["terminationGracePeriodSeconds"] >= 60
    assert run["resources"]["limits"]["memory"] == run["resources"]["requests"]["memory"]
    assert "env" not in run  # secrets come from the secret
    assert run["envFrom"] == [{"secretRef": {"name": "rides"}}]
    mounted = {mount["name"] for mount in run["volumeMounts"]}
    assert mounted == {volume["name"] for volume in pod["volumes"]}


def test_one_pod_has_the_checkpoint_and_is_asked_whether_it_lives() -> None:
    spec = documents()["Deployment"]["spec"]
    assert (spec["replicas"], spec["strategy"]["type"]) == (1, "Recreate")
    (run,) = spec["template"]["spec"]["containers"]
    checkpoint = parsed(run["args"])["checkpoint"]
    for probe in ("startupProbe", "livenessProbe"):
        words = run[probe]["exec"]["command"]
        assert words == ["tidegate", "ctl", checkpoint, "status", "--json"]


def test_java_and_the_python_processes_of_a_pod_fit_into_its_limit() -> None:
    (run,) = documents()["Deployment"]["spec"]["template"]["spec"]["containers"]
    options = parsed(run["args"])
    workers = re.fullmatch(r"local\[(\d+)\]", options["master"])
    assert workers is not None
    assert options["conf"] == ("spark.driver.memory=1g",)
    python_bytes = options["memory_limit"] * (1 + int(workers[1]))
    assert run["resources"]["limits"]["memory"] == "4Gi"
    assert python_bytes + 1.4 * 2**30 <= 4 * 2**30  # 0.4 GB beside the heap


def test_a_job_with_a_mistake_is_not_tried_again() -> None:
    job = documents()["CronJob"]["spec"]
    assert job["concurrencyPolicy"] == "Forbid"
    (rule,) = job["jobTemplate"]["spec"]["podFailurePolicy"]["rules"]
    assert rule["action"] == "FailJob"
    assert rule["onExitCodes"]["values"] == [EXIT_MISTAKE]
    assert job["jobTemplate"]["spec"]["template"]["spec"]["restartPolicy"] == "Never"

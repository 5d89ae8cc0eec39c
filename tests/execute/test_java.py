"""Java is found, passed over or asked for as the machine allows; every Java here is a script."""

from __future__ import annotations

from pathlib import Path

import pytest

from tidegate.errors import OptionError, RunError
from tidegate.execute import java as module
from tidegate.execute.java import ensure_java, find_java, install_java, main, survey

NO_ROOTS: tuple[Path, ...] = ()


def script(path: Path, body: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)
    return path


def fake_java(home: Path, version: str, vector: bool = True, says_home: Path | None = None) -> Path:
    """A home with a ``bin/java`` that answers as a Java of that version does; returns the home."""
    refuse = "" if vector else 'case "$*" in *add-modules*) echo not found >&2; exit 1;; esac\n'
    where = f"echo '    java.home = {says_home}' >&2\n" if says_home else ""
    answer = f"""echo 'openjdk version "{version}" 2025-04-15' >&2"""
    script(home / "bin" / "java", refuse + where + answer)
    return home


def test_java_home_comes_first(tmp_path: Path) -> None:
    mine = fake_java(tmp_path / "mine", "21.0.3")
    other = fake_java(tmp_path / "other", "17.0.15")
    found = find_java({"JAVA_HOME": str(mine), "PATH": f"{other}/bin"}, NO_ROOTS)
    assert found == module.Java(mine, "21.0.3")


def test_path_is_resolved_to_its_home(tmp_path: Path) -> None:
    home = fake_java(tmp_path / "jvm" / "java-17", "17.0.15")
    links = tmp_path / "usr" / "bin"
    links.mkdir(parents=True)
    (links / "java").symlink_to(home / "bin" / "java")
    assert find_java({"PATH": str(links)}, NO_ROOTS) == module.Java(home, "17.0.15")


def test_a_version_manager_on_the_path_is_seen_through(tmp_path: Path) -> None:
    shims = fake_java(tmp_path / "shims", "17.0.15", says_home=Path("/real/home"))
    found = find_java({"PATH": f"{shims}/bin"}, NO_ROOTS)
    assert found == module.Java(Path("/real/home"), "17.0.15")


def test_the_roots_are_searched_in_order_of_name(tmp_path: Path) -> None:
    fake_java(tmp_path / "java-11", "11.0.20")
    fake_java(tmp_path / "java-17", "17")
    fake_java(tmp_path / "java-25", "25")
    (tmp_path / "empty").mkdir()
    assert find_java({"PATH": ""}, (tmp_path,)) == module.Java(tmp_path / "java-17", "17")


def test_an_old_java_home_is_passed_over(tmp_path: Path) -> None:
    old = fake_java(tmp_path / "old", "1.8.0_392", vector=False)
    good = fake_java(tmp_path / "jvm" / "java-17", "17.0.15")
    environment = {"JAVA_HOME": str(old), "PATH": ""}
    assert ensure_java(environment, (tmp_path / "jvm",)) == module.Java(good, "17.0.15")
    assert environment["JAVA_HOME"] == str(good)


@pytest.mark.parametrize("version", ["21-ea", "17", "22.0.1+8", "25.0.1"])
def test_versions_that_are_new_enough(tmp_path: Path, version: str) -> None:
    home = fake_java(tmp_path / "home", version)
    assert find_java({"JAVA_HOME": str(home), "PATH": ""}, NO_ROOTS) == module.Java(home, version)


@pytest.mark.parametrize("version", ["1.8.0_392", "11.0.20", "16.0.2"])
def test_versions_that_are_too_old(tmp_path: Path, version: str) -> None:
    home = fake_java(tmp_path / "home", version)
    assert find_java({"JAVA_HOME": str(home), "PATH": ""}, NO_ROOTS) is None


def test_a_java_without_the_vector_module_is_not_taken(tmp_path: Path) -> None:
    home = fake_java(tmp_path / "trimmed", "21.0.3", vector=False)
    candidates = list(survey({"JAVA_HOME": str(home), "PATH": ""}, NO_ROOTS))
    assert candidates[0].fault == "Java 21.0.3 without the module jdk.incubator.vector"
    assert find_java({"JAVA_HOME": str(home), "PATH": ""}, NO_ROOTS) is None


def test_none_is_one_sentence_and_what_to_do() -> None:
    with pytest.raises(OptionError) as raised:
        ensure_java({"PATH": ""}, NO_ROOTS)
    assert str(raised.value) == (
        "Java: Tidegate on Spark needs Java 17 or newer; got none. Install Java 17 (Debian, "
        "Ubuntu: apt-get install openjdk-17-jre-headless), or set JAVA_HOME, or run "
        'without Spark: --master none, tg.Session(master="none").'
    )


def test_what_was_passed_over_is_named(tmp_path: Path) -> None:
    old = fake_java(tmp_path / "old", "11.0.20")
    with pytest.raises(OptionError, match=f"got Java 11.0.20 .JAVA_HOME={old}.") as raised:
        ensure_java({"JAVA_HOME": str(old), "PATH": ""}, NO_ROOTS)
    assert raised.value.got == f"Java 11.0.20 (JAVA_HOME={old})"


def test_a_java_home_that_is_not_there_is_named(tmp_path: Path) -> None:
    environment = {"JAVA_HOME": str(tmp_path / "gone"), "PATH": ""}
    with pytest.raises(OptionError, match="got no Java that starts"):
        ensure_java(environment, NO_ROOTS)


def test_one_java_by_two_names_is_looked_at_once(tmp_path: Path) -> None:
    home = fake_java(tmp_path / "jvm" / "java-17", "17")
    environment = {"JAVA_HOME": str(home), "PATH": f"{home}/bin"}
    assert len(list(survey(environment, (tmp_path / "jvm",)))) == 1


class Apt:
    """Scripts that stand for apt on a PATH of their own, and the log of what they were told."""

    def __init__(self, folder: Path, offers: str, after_update: str | None = None) -> None:
        self.bin, self.log, self.lists = folder / "bin", folder / "log", folder / "lists"
        self.log.touch()
        self.lists.write_text(offers)
        update = f"echo '{after_update}' > {self.lists}" if after_update is not None else "true"
        script(
            self.bin / "apt-get",
            f'echo "$*" >> {self.log}\n[ "$1" = update ] && {{ {update}; }}\nexit 0',
        )
        script(self.bin / "apt-cache", f"while read -r line; do echo $line; done < {self.lists}")

    @property
    def environment(self) -> dict[str, str]:
        return {"PATH": str(self.bin)}

    @property
    def told(self) -> list[str]:
        return self.log.read_text().splitlines()


def test_apt_installs_the_lowest_version_that_will_do(tmp_path: Path) -> None:
    apt = Apt(
        tmp_path,
        "openjdk-25-jre-headless - x\nopenjdk-11-jre-headless - x\nopenjdk-21-jre-headless - x\n",
    )
    assert install_java(apt.environment, root=True) == "openjdk-21-jre-headless"
    assert apt.told == ["install -y --no-install-recommends openjdk-21-jre-headless"]


def test_apt_without_lists_is_updated_first(tmp_path: Path) -> None:
    apt = Apt(tmp_path, "", after_update="openjdk-17-jre-headless - x")
    assert install_java(apt.environment, root=True) == "openjdk-17-jre-headless"
    assert apt.told[0] == "update"


def test_apt_that_offers_nothing_is_one_sentence(tmp_path: Path) -> None:
    apt = Apt(tmp_path, "openjdk-11-jre-headless - x")
    with pytest.raises(OptionError, match="apt must offer a headless Java 17 or newer; got none"):
        install_java(apt.environment, root=True)


def test_apt_that_fails_gives_its_last_line(tmp_path: Path) -> None:
    apt = Apt(tmp_path, "openjdk-17-jre-headless - x\n")
    script(apt.bin / "apt-get", "echo first >&2; echo 'E: no space left' >&2; exit 100")
    with pytest.raises(RunError, match="got E: no space left"):
        install_java(apt.environment, root=True)


def test_sudo_without_a_password_is_used(tmp_path: Path) -> None:
    apt = Apt(tmp_path, "openjdk-17-jre-headless - x\n")
    script(
        apt.bin / "sudo",
        f'echo "sudo $*" >> {apt.log}; shift; case $1 in true) exit 0;; esac; "$@"',
    )
    install_java(apt.environment, root=False)
    assert apt.told[:2] == [
        "sudo -n true",
        "sudo -n apt-get install -y --no-install-recommends openjdk-17-jre-headless",
    ]


def test_without_the_right_to_install_it_is_asked_for(tmp_path: Path) -> None:
    apt = Apt(tmp_path, "openjdk-17-jre-headless - x\n")
    script(apt.bin / "sudo", "exit 1")
    with pytest.raises(OptionError, match="neither root nor sudo without a password"):
        install_java(apt.environment, root=False)
    assert apt.told == []


def test_without_apt_it_is_asked_for() -> None:
    with pytest.raises(OptionError, match="no apt-get to install it with"):
        install_java({"PATH": ""}, root=True)


def test_main_says_which(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    home = fake_java(tmp_path / "home", "17.0.15")
    assert main([], {"JAVA_HOME": str(home), "PATH": ""}, NO_ROOTS) == 0
    assert capsys.readouterr().out == f"Java: 17.0.15 in {home}\n"


def test_main_says_that_java_home_is_passed_over(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    old, good = fake_java(tmp_path / "old", "11.0.2"), fake_java(tmp_path / "good", "17.0.15")
    assert main([], {"JAVA_HOME": str(old), "PATH": f"{good}/bin"}, NO_ROOTS) == 0
    assert f"JAVA_HOME={old} is passed over: Java 11.0.2." in capsys.readouterr().out


def test_main_without_java_is_exit_code_2(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--install"], {"PATH": ""}, NO_ROOTS) == 2
    assert "Java: Tidegate on Spark needs Java 17 or newer" in capsys.readouterr().err

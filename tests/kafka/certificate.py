"""Certificates of tests, made by the `keytool` of the JVM that runs the broker."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from pathlib import Path

from tools.cluster import HOST
from tools.jvm import QUICK

from tidegate.execute.java import ensure_java

PASSWORD = "of-no-worth"
"""Of all stores of keys."""


@dataclass(frozen=True)
class Authority:
    """Signs certificates; `folder` has its store of keys."""

    folder: Path

    @staticmethod
    def at(folder: Path) -> Authority:
        """A new one."""
        folder.mkdir(parents=True)
        made = Authority(folder)
        made._run("-genkeypair", "-alias", "ca", *_named("tests"), "-ext", "bc:critical=ca:true")
        made._run("-exportcert", "-rfc", "-alias", "ca", "-file", str(made.certificate))
        return made

    @property
    def certificate(self) -> Path:
        """What clients trust it by, as PEM."""
        return self.folder / "ca.pem"

    def issue(self, name: str) -> Path:
        """A store with a key and its certificate, which is for this host."""
        host = ("-ext", f"san=ip:{HOST}")
        self._run("-genkeypair", "-alias", name, *_named(name), "-signer", "ca", *host)
        store = self.folder / f"{name}.p12"
        into = ("-destkeystore", str(store), "-deststoretype", "PKCS12", "-deststorepass", PASSWORD)
        self._tool("-importkeystore", "-srckeystore", str(self._store), "-srcalias", name, *into)
        return store

    @property
    def _store(self) -> Path:
        return self.folder / "authority.p12"

    def _run(self, *words: str) -> None:
        self._tool(*words, "-keystore", str(self._store), "-storepass", PASSWORD)

    def _tool(self, *words: str) -> None:
        tool = Path(ensure_java({}).home) / "bin" / "keytool"
        password = ("-srcstorepass", PASSWORD) if words[0] == "-importkeystore" else ()
        done = subprocess.run(
            [str(tool), *(f"-J{word}" for word in QUICK.split()), *words, *password],
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr


def _named(name: str) -> tuple[str, ...]:
    return ("-dname", f"CN={name}", "-keyalg", "EC", "-validity", "30", "-storetype", "PKCS12")

"""Plants a credential where a connector looks for it, and searches all that a run leaves and says.

A connector adds a line to `PLANTED`: what it is called, the variable or the file that has its
secret, and the value. Tests that run a query with it call `search` on every folder and text that
came of it: checkpoint, results, log, explain, summary, status, lineage.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

VALUE = "hunter2-of/{name}+planted"
"""The characters make encodings differ from the plain text."""


@dataclass(frozen=True)
class Planted:
    """A secret of a connector: `variable` has it, or names a `file` that has it."""

    name: str
    variable: str
    in_file: bool = False

    @property
    def value(self) -> str:
        return VALUE.replace("{name}", self.name)

    def plant(self, monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
        """Have it in the environment, or in a file there, which is not searched."""
        if not self.in_file:
            monkeypatch.setenv(self.variable, self.value)
            return
        file = folder / f"{self.name}.secret"
        file.write_text(self.value + "\n")
        monkeypatch.setenv(self.variable, str(file))

    def forms(self) -> set[bytes]:
        """The secret as it may look in a file: plain, in a URI, in base64 at any offset."""
        plain = self.value.encode()
        encoded = {base64.b64encode(b"x" * n + plain)[4:-4] for n in range(3)}
        return {plain, quote(self.value, safe="").encode(), *encoded}


class PlantedKey(Planted):
    """A signing key, of which the secret is the 32 bytes; `--sign` is given its PEM file."""

    def plant(self, monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
        key = Ed25519PrivateKey.from_private_bytes(self.value.encode())
        form = Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()
        (folder / f"{self.name}.pem").write_bytes(key.private_bytes(*form))


PLANTED = {
    planted.name: planted
    for planted in (
        Planted("s3", "AWS_SECRET_ACCESS_KEY"),
        Planted("s3-session", "AWS_SESSION_TOKEN"),
        Planted("azure", "AZURE_STORAGE_ACCOUNT_KEY"),
        Planted("postgres", "PGPASSWORD"),
        Planted("lineage", "OPENLINEAGE_API_KEY"),
        Planted("lineage-file", "OPENLINEAGE_API_KEY_FILE", in_file=True),
        PlantedKey("signing-key-1", "--sign", in_file=True),
    )
}
"""Every secret that a connector asks for, by a name."""


def found_in(folder: Path, secrets: Iterable[Planted]) -> list[str]:
    """The files below a folder that have one of the secrets in their bytes or their names."""
    files = [path for path in sorted(folder.rglob("*")) if path.is_file()]
    assert files, f"nothing to search in {folder}"
    return [
        f"{secret.name} in {path}"
        for path in files
        for secret in secrets
        if any(form in path.read_bytes() or form in bytes(path) for form in secret.forms())
    ]


def search(folders: Iterable[Path], texts: Iterable[str], secrets: Iterable[Planted]) -> list[str]:
    """Where one of the secrets is; empty where none has left its place. Counts nothing as clean
    that is not there: a folder without files, or an empty text, is an error.
    """
    secrets = list(secrets)
    found = [place for folder in folders for place in found_in(folder, secrets)]
    for text in texts:
        assert text, "an empty text says nothing"
        found += [
            f"{secret.name} in {text[:80]!r}"
            for secret in secrets
            if any(form in text.encode() for form in secret.forms())
        ]
    return found

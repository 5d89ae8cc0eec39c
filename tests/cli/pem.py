"""Keys for signing, in PEM files as openssl makes them."""

from __future__ import annotations

from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
)


def write_keys(name: str) -> None:
    """A pair of them in the working directory: NAME.pem and NAME.pub."""
    key = Ed25519PrivateKey.generate()
    form = Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()
    Path(f"{name}.pem").write_bytes(key.private_bytes(*form))
    public = key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    Path(f"{name}.pub").write_bytes(public)

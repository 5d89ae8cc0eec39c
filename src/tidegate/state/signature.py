"""Signs bytes with an Ed25519 key from a PEM file, and checks them with the public key alone.

The library `cryptography` is the extra `sign`. A private key stays in this process: no message has
any of its bytes, and nothing writes it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from tidegate.errors import OptionError

_MAKE = "Make one with: openssl genpkey -algorithm ed25519 -out key.pem"
_DERIVE = "Make it with: openssl pkey -in key.pem -pubout -out public.pem"


@dataclass(frozen=True)
class PublicKey:
    """Checks signatures of one key."""

    _key: Any

    @staticmethod
    def of_file(path: str, where: str) -> PublicKey:
        """The key in a PEM file; an OptionError at `where` for any other file."""
        check_library(where)
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
        from cryptography.hazmat.primitives.serialization import load_pem_public_key

        read, kind = load_pem_public_key, Ed25519PublicKey
        return PublicKey(_key_in(path, where, read, kind, "public", _DERIVE))

    def is_of(self, signature: bytes, data: bytes) -> bool:
        """Whether the key has signed these bytes."""
        from cryptography.exceptions import InvalidSignature

        try:
            self._key.verify(signature, data)
        except InvalidSignature:
            return False
        return True


class SigningKey:
    """A private key; equal bytes get equal signatures."""

    def __init__(self, key: Any) -> None:
        self._key = key
        self.public = PublicKey(key.public_key())

    @staticmethod
    def of_file(path: str, where: str) -> SigningKey:
        """The key in a PEM file without a password; an OptionError at `where` for any other."""
        check_library(where)
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
        from cryptography.hazmat.primitives.serialization import load_pem_private_key

        read, kind = partial(load_pem_private_key, password=None), Ed25519PrivateKey
        return SigningKey(_key_in(path, where, read, kind, "private", _MAKE))

    def sign(self, data: bytes) -> bytes:
        """The 64 bytes that only this key gives."""
        signature: bytes = self._key.sign(data)
        return signature


def _key_in(path: str, where: str, read: Any, kind: type, name: str, remedy: str) -> Any:
    must = f"must be a PEM file with an Ed25519 {name} key, without a password"
    try:
        key = read(Path(path).read_bytes())
    except OSError as error:
        raise OptionError(where, must, f"{path}: {error.strerror}", remedy) from None
    except Exception:  # the library has several, and what they say may quote the file
        raise OptionError(where, must, f"{path}, which is none", remedy) from None
    if not isinstance(key, kind):
        raise OptionError(where, must, f"{path}, a key of another kind", remedy)
    return key


def check_library(where: str) -> None:
    """Refuse, at `where`, to go on without the extra."""
    try:
        import cryptography  # noqa: F401
    except ImportError:
        remedy = "Run pip install 'tidegate[sign]'."
        raise OptionError(where, "needs cryptography", "none", remedy) from None

"""Finds messages in compiled descriptors: a file of `protoc`, or one that a registry has.

The library of Protobuf is imported when the first one is looked for.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Sequence
from functools import lru_cache
from importlib import import_module
from typing import Any

from tidegate.errors import SourceError, UnavailableError, near

_WELL_KNOWN = "any api duration empty field_mask source_context struct timestamp type wrappers"

_COMPILE = "Compile it with protoc --include_imports --descriptor_set_out=FILE.desc."


class DescriptorError(ValueError):
    """Bytes that are no descriptor, or one that lacks something; says what."""


def library(where: str) -> None:
    """Refuse to go on without the library of Protobuf; says what to install."""
    try:
        import_module("google.protobuf.descriptor_pool")
    except ImportError:
        remedy = "Run pip install 'tidegate[kafka]'."
        raise UnavailableError(where, "needs protobuf", "none", remedy) from None


@lru_cache(maxsize=256)
def pool_of(files: tuple[bytes, ...]) -> Any:
    """A pool with these file descriptors and the well-known files that they import."""
    from google.protobuf import descriptor_pb2, descriptor_pool
    from google.protobuf.message import DecodeError

    protos = {}
    for data in files:
        try:
            proto = descriptor_pb2.FileDescriptorProto.FromString(data)
        except DecodeError as error:
            raise DescriptorError("bytes that are no descriptor") from error
        protos[proto.name] = proto
    pool, added = descriptor_pool.DescriptorPool(), set[str]()

    def add(name: str) -> None:
        if name in added:
            return
        added.add(name)
        proto = protos.get(name) or _well_known(name)
        for other in proto.dependency:
            add(other)
        try:
            pool.AddSerializedFile(proto.SerializeToString())
        except TypeError as error:
            raise DescriptorError(f"{name}, which does not fit together: {error}") from error

    for name in protos:
        add(name)
    return pool


def _well_known(name: str) -> Any:
    from google.protobuf import descriptor_pb2, descriptor_pool

    for word in _WELL_KNOWN.split():
        import_module(f"google.protobuf.{word}_pb2")
    try:
        found = descriptor_pool.Default().FindFileByName(name)
    except KeyError as error:
        raise DescriptorError(f"no {name}, which is imported") from error
    proto = descriptor_pb2.FileDescriptorProto()
    found.CopyToProto(proto)
    return proto


@lru_cache(maxsize=256)
def message_class(files: tuple[bytes, ...], name: str) -> Any:
    """The class of a message in files that have been looked into."""
    from google.protobuf import message_factory

    return message_factory.GetMessageClass(pool_of(files).FindMessageTypeByName(name))


def set_files(data: bytes, where: str) -> tuple[bytes, ...]:
    """The descriptors of the files in a set, as protoc writes it."""
    from google.protobuf import descriptor_pb2
    from google.protobuf.message import DecodeError

    try:
        files = descriptor_pb2.FileDescriptorSet.FromString(data).file
        found = tuple(file.SerializeToString() for file in files)
        if not found:
            raise DescriptorError("no descriptor in it")
        pool_of(found)
    except (DecodeError, DescriptorError) as error:
        must = "the file must be a set of descriptors with all their imports"
        raise SourceError(where, must, str(error), _COMPILE) from error
    return found


def registered_files(texts: Sequence[str]) -> tuple[bytes, ...]:
    """The descriptors that a registry has; DescriptorError where it has the source text."""
    found = []
    for text in texts:
        try:
            found.append(base64.b64decode(text, validate=True))
        except (binascii.Error, ValueError) as error:
            raise DescriptorError("the source text of a .proto file") from error
    return tuple(found)


def messages_of(files: tuple[bytes, ...]) -> list[str]:
    """The names of all messages at the top of the files, those of the last file first."""
    from google.protobuf import descriptor_pb2

    found = []
    for data in reversed(files):
        proto = descriptor_pb2.FileDescriptorProto.FromString(data)
        dot = f"{proto.package}." if proto.package else ""
        found += [dot + message.name for message in proto.message_type]
    return found


def find_message(files: tuple[bytes, ...], name: str | None, where: str) -> Any:
    """The descriptor of a message; without a name that of the only message."""
    names = messages_of(files)
    own = [n for n in names if not n.startswith("google.protobuf.")]
    if name is None:
        if len(own) != 1:
            must = "the message that values are must be named"
            listed = ", ".join(own) or "none"
            remedy = f"Say OPTIONS (message '{own[0] if own else 'package.Name'}')."
            raise SourceError(where, must, f"the messages {listed}", remedy)
        name = own[0]
    try:
        return pool_of(files).FindMessageTypeByName(name)
    except KeyError:
        must = "the message must be in the descriptors"
        raise SourceError(where, must, f"no message {name}", near(name, own)) from None


def place_of(descriptor: Any) -> tuple[int, ...]:
    """The path of a message in its file: the indexes of the messages around it, then its own."""
    around = descriptor.containing_type
    if around is None:
        return (int(descriptor.index),)
    return (*place_of(around), int(descriptor.index))


def message_at(files: tuple[bytes, ...], place: Sequence[int]) -> str | None:
    """The full name of the message at a path (`place_of`) in the last file; None for none."""
    from google.protobuf import descriptor_pb2

    proto = descriptor_pb2.FileDescriptorProto.FromString(files[-1])
    inside, name = proto.message_type, str(proto.package)
    for number in place:
        if number >= len(inside):
            return None
        name = f"{name}.{inside[number].name}".lstrip(".")
        inside = inside[number].nested_type
    return name

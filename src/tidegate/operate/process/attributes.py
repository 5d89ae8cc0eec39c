"""The attributes of the user's object, between a bucket as it is stored and as the object left it.

Mappings are kept entry by entry, everything else in the head of the bucket.
"""

from __future__ import annotations

from collections import Counter, OrderedDict, defaultdict
from collections.abc import Callable, Collection, Mapping
from functools import cached_property
from json.encoder import encode_basestring_ascii as text_of
from typing import Any, NamedTuple

from tidegate.operate.process.entry import StateRow, names_of
from tidegate.operate.process.entry_changes import EntryChanges
from tidegate.operate.process.plain import FACTORIES, Encoder
from tidegate.operate.process.stored import BucketRows
from tidegate.operate.process.stored_entries import NOTHING, Loaded, StoredEntries
from tidegate.operate.process.stored_mapping import StoredMapping

_DEFAULT = "defaultdict"
_KINDS: dict[str, Callable[[], dict[Any, Any]]] = {
    "dict": dict,
    "Counter": Counter,
    "OrderedDict": OrderedDict,
}
_NAMES = {made: name for name, made in _KINDS.items()} | {defaultdict: _DEFAULT}


class MappingHead(NamedTuple):
    """What the head of a bucket says of a mapping.

    `factory` is that of a defaultdict, `number` that of the next entry.
    """

    kind: str
    factory: str | None = None
    number: int = 0
    size: int = 0

    @staticmethod
    def of(value: Any) -> MappingHead | None:
        """That of a mapping without entries; None for what is not kept by entry."""
        kind = _NAMES.get(type(value))
        if kind is None or kind != _DEFAULT:
            return None if kind is None else MappingHead(kind)
        made = value.default_factory
        if made is None:
            return MappingHead(kind)
        factory = getattr(made, "__name__", "")
        return MappingHead(kind, factory) if made is FACTORIES.get(factory) else None

    def text(self) -> str:
        """As JSON."""
        factory = "null" if self.factory is None else f'"{self.factory}"'
        return f'["{self.kind}", {factory}, {self.number}, {self.size}]'

    def empty(self) -> dict[Any, Any]:
        if self.kind != _DEFAULT:
            return _KINDS[self.kind]()
        return defaultdict(None if self.factory is None else FACTORIES[self.factory])


class Attributes:
    """The attributes of one bucket's object in one batch."""

    def __init__(self, bucket: BucketRows | None) -> None:
        self._bucket = bucket
        self._stored: dict[str, _Stored] = {}

    def restored(self, head: list[Any], whole: Collection[str] | None) -> dict[str, Any]:
        """The attributes of a head.

        Those in `whole`, all where it is None, are mappings as the object left them; the other
        mappings read their entries when they are asked for.
        """
        attributes: dict[str, Any] = {}
        for name, is_mapping, content in head:
            if not is_mapping:
                attributes[name] = content
                continue
            assert self._bucket is not None
            stored = _Stored(MappingHead(*content), self._bucket, name)
            self._stored[name] = stored
            at_once = whole is None or name in whole
            attributes[name] = stored.real() if at_once else stored.lazy()
        return attributes

    def changes(self, attributes: Mapping[Any, Any]) -> tuple[str, list[bytes], list[StateRow]]:
        """What the head has of the attributes, as JSON and buffers, and the entries that changed.

        NotPlain names what cannot be kept.
        """
        encoder, parts, rows, by_entry = Encoder(), [], list[StateRow](), set[str]()
        for name, value in attributes.items():
            changed = self._changed(name, value, encoder)
            if changed is None:
                plain = value.real() if isinstance(value, StoredMapping) else value
                text = encoder.text(plain, f"self.{name}")
                parts.append(f"[{encoder.text(name, 'the name of an attribute')},0,{text}]")
            else:
                parts.append(f"[{text_of(name)},1,{changed[0].text()}]")
                rows += changed[1]
                by_entry.add(name)
        for name, stored in self._stored.items():
            if name not in by_entry:
                rows += stored.gone()
        return f"[{','.join(parts)}]", encoder.buffers, rows

    def gone(self) -> list[StateRow]:
        """The rows that say of all entries that they are: the state is kept otherwise now."""
        return [row for stored in self._stored.values() for row in stored.gone()]

    def _changed(
        self, name: Any, value: Any, encoder: Encoder
    ) -> tuple[MappingHead, list[StateRow]] | None:
        """What is kept of a mapping, and its entries that changed; None for what is in the head."""
        stored = self._stored.get(name)
        if stored is not None and isinstance(value, StoredMapping) and value is stored.mapping:
            changes = EntryChanges(stored.names, f"self.{name}", stored.head.number, encoder)
            head, by_entry = stored.head, changes.of_stored(value)
        else:
            empty = MappingHead.of(value)
            if empty is None or type(name) is not str:
                return None
            head = empty if stored is None else empty._replace(number=stored.head.number)
            changes = EntryChanges(names_of(name), f"self.{name}", head.number, encoder)
            before = NOTHING if stored is None else stored.loaded
            by_entry = changes.of_real(value, before)
        if not by_entry:
            return None
        encoder.meet(value, f"self.{name}")
        return head._replace(number=changes.number, size=len(value)), changes.rows


class _Stored:
    """A mapping as it is stored, and the one that reads it where it does so bit by bit."""

    def __init__(self, head: MappingHead, bucket: BucketRows, name: str) -> None:
        self.head = head
        self.names = names_of(name)
        self.mapping: StoredMapping | None = None
        self._entries = StoredEntries(bucket, self.names)

    def lazy(self) -> StoredMapping:
        self.mapping = StoredMapping(self._entries, self.head.empty(), self.head.size)
        return self.mapping

    def real(self) -> dict[Any, Any]:
        real = self.head.empty()
        for key, value in zip(self.loaded.keys, self.loaded.values):
            real[key] = value
        return real

    @cached_property
    def loaded(self) -> Loaded:
        """All entries as they are stored."""
        return self._entries.load()

    def gone(self) -> list[StateRow]:
        rows = self.loaded.rows
        return [StateRow.gone(*row) for row in zip(rows.entries, rows.names)]

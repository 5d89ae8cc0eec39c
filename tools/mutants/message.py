"""Mistakes in decoding values of messages."""

from __future__ import annotations

from mutants.mutant import Mutant

_TEXT = "tests/source/message/test_text_values.py"
_AVRO = "tests/source/message/test_avro_values.py"
_PROTOBUF = "tests/source/message/test_protobuf_values.py"

MUTANTS = (
    Mutant(
        "a line feed inside of a string of JSON is taken for a blank",
        "source/message/text.py",
        'one_line = b"\\0".join(values).replace(b"\\n", b"\\t")',
        'one_line = b"\\0".join(values).replace(b"\\n", b" ")',
        _TEXT,
    ),
    Mutant(
        "bytes behind an Avro record are passed over",
        "source/message/avro/decode_loop.py",
        "np.int64(0) if at == stop else",
        "np.int64(0) if at <= stop else",
        _AVRO,
    ),
    Mutant(
        "a broken Avro value leaves what was read of it",
        "source/message/avro/decode_loop.py",
        "            counts[:] = before\n",
        "",
        _AVRO,
    ),
    Mutant(
        "a field that an Avro writer lacks is not found by an alias",
        "source/message/avro/column.py",
        "for n in (field.name, *field.aliases) if n in names",
        "for n in (field.name,) if n in names",
        _AVRO,
    ),
    Mutant(
        "a checkpoint goes on by another file with the schema",
        "source/message/schema_lookup.py",
        'if saved.get("digest") != digest:',
        'if saved.get("digest") is None:',
        _AVRO,
    ),
    Mutant(
        "a field of Protobuf that was not set is zero, though it knows",
        "source/message/protobuf/column.py",
        "    if field.has_presence:\n",
        "    if field.has_presence and field.message_type is not None:\n",
        _PROTOBUF,
    ),
)

"""Decodes the values of messages, as a broker delivers them, into rows.

- `value`: the base classes; `registry`: a line for each format, and `open_values` for sources
- `text`: JSON and CSV by the rules of text files; `avro`, `protobuf`: by schemas
- `registered`: where schemas come from; `tidegate.kafka.schema_registry` asks registries
"""

"""Protobuf values: parsed by the library of Protobuf, then taken apart column by column.

- `descriptor`: messages by their compiled descriptors, from a file or a registry
- `column`: the types of columns, and messages as columns; `format`: the value format
"""

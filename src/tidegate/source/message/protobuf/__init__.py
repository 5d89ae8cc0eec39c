"""Parses Protobuf values with Protobuf's own library, then takes them apart column by column.

- `descriptor`: messages by their compiled descriptors, from a file or a registry
- `column`: the types of columns, and messages as columns; `format`: the value format
"""

"""Decodes Avro values into columns with compiled loops, then resolves them to the reader's schema.

- `schema`: parses a schema to a tree of types; `arrow`: maps types to columns
- `program`: turns a writer's schema into steps; `decode_loop` runs all its values through them
- `column`: builds columns of the reader's schema, by Avro's rules of resolution
- `default`: defaults of fields that a writer lacks; `format`: the value format
"""

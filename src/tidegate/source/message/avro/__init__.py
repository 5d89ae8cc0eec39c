"""Avro values: decoded by compiled loops into columns, and resolved to the reader's schema there.

- `schema`: the types of a schema as a tree; `arrow`: the columns that they become
- `program`: a writer's schema as steps of `decode_loop`, which all values of it are run through
- `column`: what the loop found as columns of the reader's schema, by Avro's rules of resolution
- `default`: defaults of fields that a writer lacks; `format`: the value format
"""

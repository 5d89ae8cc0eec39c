"""What the source and the sink of Kafka share: addresses, clients, credentials.

- `address`: `kafka://host:port/topic?name=value`, taken apart and checked.
- `setting`: settings of clients from the environment or a file, credentials among them.
- `schema_registry`, `wire`: schemas of values by their ids, and values that begin with one.
- `client`: the library, imported when it is needed, and clients made with these settings.
"""

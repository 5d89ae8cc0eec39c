"""What the source and the sink of Kafka share: addresses, clients, credentials.

- `address`: takes `kafka://host:port/topic?name=value` apart and checks it.
- `setting`: reads settings of clients, with credentials, from the environment or a file.
- `schema_registry`, `wire`: schemas by their ids, and values that begin with such an id.
- `client`: makes clients with these settings; imports the library when it is first needed.
"""

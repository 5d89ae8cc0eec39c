"""Reads topics of Kafka: a partition is a source of the gate, an offset its position.

- `connector`: opens a URI; `partition`: one partition on the driver, and its readers for tasks
- `topic`: asks brokers about a topic; `record`: holds records of a range of offsets
- `feed`: the driver's consumer of all partitions; `fetch`: ranges of offsets for tasks
- `decode`, `shape`: from records to rows; `column`: key, offset, timestamp and so on as columns
"""

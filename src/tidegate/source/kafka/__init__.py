"""Topics of Kafka as sources: a partition is a source of the gate, an offset its position.

- `connector`: a URI; `partition`: one partition on the driver, and its readers for tasks
- `topic`: what brokers are asked about a topic; `record`: records of a range of offsets
- `feed`: the driver's consumer of all partitions; `fetch`: ranges of offsets for tasks
- `column`: key, partition, offset, timestamp and headers as columns
"""

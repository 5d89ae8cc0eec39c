"""Results as records of a Kafka topic, exactly once for consumers that read what is committed.

- `option`: what the URI of an output may say.
- `record`: rows as keys and values, kept in the checkpoint until they are published.
- `topic`: looks topics up, and makes them where that is asked for.
- `marker`: the number of the newest published batch, which each transaction commits with its rows.
- `transaction`: writes a batch and its marker in one transaction, whatever happens to the answer.
- `sink`: the calls of the driver.
"""

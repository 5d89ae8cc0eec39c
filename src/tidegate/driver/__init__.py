"""The loop of batches on the driver: cut, operate, collect, commit; recovery and reports."""

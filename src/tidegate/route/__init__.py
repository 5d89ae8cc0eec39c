"""Where a tuple goes: the bucket of its key, and the instance that owns the bucket."""

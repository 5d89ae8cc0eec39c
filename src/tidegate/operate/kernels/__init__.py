"""Pure functions on arrays; they know nothing of plans, buckets or state."""

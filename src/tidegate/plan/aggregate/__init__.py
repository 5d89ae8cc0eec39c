"""Planning of aggregates: the lowered call, its answer, and its window."""

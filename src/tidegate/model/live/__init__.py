"""A running query as the model follows it: rates, costs, work, and what is expected of it."""

"""Tables in a plan: where joins look rows up, and what Spark computes before that."""

"""What a query is expected to do, from its parameters and the rates of its input alone."""

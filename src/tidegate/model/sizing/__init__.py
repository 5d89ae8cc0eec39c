"""How many instances a query of any kind needs at rates that last."""

"""Shows a query while it runs: the view on a terminal, and the address of its page."""

"""Commands to a running query from the same user's other processes, over a Unix socket."""

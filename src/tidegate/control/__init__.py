"""Commands to a running query from another process of the same user, over a socket on its host."""

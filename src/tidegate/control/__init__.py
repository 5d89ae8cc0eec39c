"""Sends commands to a running query from another process of the same user, over a local socket."""

"""Commands to a running query from another process of the same user, over a Unix socket on its
host.
"""

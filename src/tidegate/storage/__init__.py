"""Files of this machine: reading and writing them, whole or not at all, and syncing them."""

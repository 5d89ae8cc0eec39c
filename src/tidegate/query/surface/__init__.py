"""Arguments of the Python API: how they are read, and advice for names that do not exist."""

"""The Python API's arguments: how they are read, and advice for what is not there."""

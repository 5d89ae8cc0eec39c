"""The version, for the package's metadata, checkpoints and `--version`."""

__version__ = "0.1.0"

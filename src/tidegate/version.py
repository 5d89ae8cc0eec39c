"""The version, for the package's metadata, checkpoints and `--version`."""

__version__ = "0.2.0"

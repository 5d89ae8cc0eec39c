"""The version, for package metadata, checkpoints and `--version`."""

__version__ = "0.2.0"

"""Tidegate: continuous queries over streams, on Apache Spark or in one process.

The names here are the public interface; everything else may change.
"""

from __future__ import annotations

__version__ = "0.1.0"

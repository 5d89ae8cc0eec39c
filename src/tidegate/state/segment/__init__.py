"""Segments: immutable files of rows by bucket, written, read in pieces, cached, compacted."""

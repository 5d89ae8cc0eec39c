"""Stateful operators over buckets, and the kernels they use."""

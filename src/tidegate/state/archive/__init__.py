"""Keeps and reads the states of earlier batches."""

"""Aggregates within an error bound: what is kept for them, and how windows are answered from it."""

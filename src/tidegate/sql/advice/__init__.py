"""Errors for SQL that is mistaken, foreign or not available, with what to write instead."""

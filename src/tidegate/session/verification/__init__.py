"""Runs queries again, or beside each other, and compares their rows."""

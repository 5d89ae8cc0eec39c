"""Writes what commands have found: text for people, or JSON."""

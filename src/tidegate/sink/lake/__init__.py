"""Writes results into tables of Delta Lake and Iceberg, a commit of the table for each batch."""

"""Lowers logical nodes to physical subqueries: one module for each kind of node."""

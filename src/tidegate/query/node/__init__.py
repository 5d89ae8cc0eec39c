"""The nodes of the logical plan: one module for each kind, and what they share."""

"""The SQL surface: the dialect, and its binding to the nodes of query."""

"""SQL: the dialect, and its binding to logical nodes."""

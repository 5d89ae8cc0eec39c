"""Makes windows of panes, of spans of neighbours and of pieces of sessions."""

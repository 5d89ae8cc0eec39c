"""Windows of time as panes: how tuples are folded into them, and windows closed with them."""

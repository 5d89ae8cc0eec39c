"""The user's own operator: its objects, their calls and their state."""

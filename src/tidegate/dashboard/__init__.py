"""A page for a browser that shows queries at work, and the server behind it."""

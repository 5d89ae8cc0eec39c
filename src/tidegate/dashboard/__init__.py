"""Shows running queries on a page in a browser, and serves that page."""

"""The live page that shows running queries in a browser, and its server."""

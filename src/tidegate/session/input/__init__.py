"""Makes streams and tables of what a program names: files, frames, rows and catalogs."""

"""The command line: options in, one clear message or a summary out."""

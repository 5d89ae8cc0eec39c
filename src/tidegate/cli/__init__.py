"""The command line: reads options, prints one clear message or a summary."""

"""The exit codes of the command line, beside that of a run that was stopped (`stop`)."""

EXIT_FAILED = 1
"""A failure while running: run again to continue."""

EXIT_MISTAKE = 2
"""A mistake in the query or the options; nothing was started."""

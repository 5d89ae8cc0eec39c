"""The exit codes of the command line, except that of a stopped run (`stop`)."""

EXIT_FAILED = 1
"""A failure while running; running again continues."""

EXIT_MISTAKE = 2
"""A mistake in the query or the options; nothing was started."""

"""Help for users of the Python surface: what their arguments mean, and what to write instead."""

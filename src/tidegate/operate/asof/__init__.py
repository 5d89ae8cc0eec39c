"""As-of joins: each left tuple with the right one nearest to it in time."""

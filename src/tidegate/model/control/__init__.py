"""How many instances a join should have from one interval to the next, and how that is judged."""

"""Who changes the answer: the same queries on several engines, cut, spread, delayed and killed."""

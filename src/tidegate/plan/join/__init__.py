"""Plans joins: bounds out of predicates, and the method and routing that suit them."""

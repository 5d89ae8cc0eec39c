"""Pure functions on arrays, between an operator that knows its plan and the columns it is given."""

"""The journal of a query: what each batch spent its time on, for those who look at it later."""

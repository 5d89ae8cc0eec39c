"""What FROM names: streams, queries, tables, lists, and the joins between them."""

"""The aggregate functions: each file holds a kernel family and the rows of those it computes."""

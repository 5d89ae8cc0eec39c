"""The instances that the queries of a session may have together, and who has how many of them."""

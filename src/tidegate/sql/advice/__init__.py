"""What is said of SQL that is mistaken, foreign or not available, and what to write instead."""

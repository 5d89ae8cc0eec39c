"""How a session reaches Spark: in this process, over Spark Connect, or one that is there."""

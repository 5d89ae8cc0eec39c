"""How a running query changes its parallelism: what is observed, asked for and decided."""

"""The policy `auto`: a latency target, an error allowance, the cheapest remedy."""

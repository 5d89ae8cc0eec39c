"""Checkpoints that earlier versions wrote: each is continued to the same rows, or refused clearly."""

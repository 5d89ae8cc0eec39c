"""File systems that are not this host's, by their URIs: between sources, sinks and state and
`pyarrow.fs` or the clients of object stores."""

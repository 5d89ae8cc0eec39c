"""Opens file systems that are not this host's, by their URIs."""

"""Reads a history and then a topic as one stream: `delta:hist THEN kafka://host:port/rides`."""

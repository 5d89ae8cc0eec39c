"""Results as files in a folder: of this machine, of an object store or elsewhere."""

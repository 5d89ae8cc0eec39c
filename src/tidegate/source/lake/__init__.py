"""Tables of Delta Lake and Iceberg as streams: what each commit adds, in the order of commits."""

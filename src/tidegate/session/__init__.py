"""What programs and the command line hold: sessions, running queries, and how they are launched."""

"""The engine in a world that is simulated: its threads, its clock and its disk, from one seed."""

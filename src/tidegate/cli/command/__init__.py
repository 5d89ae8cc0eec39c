"""The commands of `tidegate`: one module each, named as the command."""

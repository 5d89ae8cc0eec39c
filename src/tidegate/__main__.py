"""`python -m tidegate`: the command line, for a Python whose scripts are not on the PATH."""

from tidegate.cli.main import main

if __name__ == "__main__":
    main()

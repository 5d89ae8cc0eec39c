"""`python -m tidegate`: the command line, if the scripts folder is not on the PATH."""

from tidegate.cli.main import main

if __name__ == "__main__":
    main()

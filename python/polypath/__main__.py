"""python -m polypath: the command, where it is not on the PATH."""

from polypath.cli import main

if __name__ == "__main__":
    main()

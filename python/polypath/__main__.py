"""python -m polypath: the command, where it is not on the PATH."""

from polypath.command import main

if __name__ == "__main__":
    main()

"""`python -m polypath` runs the command, for installations without it on the PATH."""

from polypath.command import main

if __name__ == "__main__":
    main()

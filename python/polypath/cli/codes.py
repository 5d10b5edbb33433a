"""Exit codes."""

from typing import Final

DONE: Final = 0
#: `polypath check` found a figure outside its bounds.
MISSED: Final = 1
BAD_INPUT: Final = 2
#: Ctrl-C; of a command that SIGTERM or SIGHUP ended, the process's own code is 143 or 129.
INTERRUPTED: Final = 130

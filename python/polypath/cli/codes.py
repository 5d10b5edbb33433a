"""Exit codes."""

from typing import Final

DONE: Final = 0
#: `polypath check` found a figure outside its bounds.
MISSED: Final = 1
BAD_INPUT: Final = 2
INTERRUPTED: Final = 130

"""Colours that figures and the report page share."""

from typing import Final

#: Okabe and Ito's palette ("Color Universal Design", 2008), which the colour-blind can tell apart; yellow left out.
PALETTE: Final = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")

"""Results as one file that another person runs again: an RO-Crate with everything that made them."""

from polypath.bundles.errors import BundleError
from polypath.bundles.packing import About, Packed, pack, require_date
from polypath.bundles.unpacking import unpack

__all__ = ["About", "BundleError", "Packed", "pack", "require_date", "unpack"]

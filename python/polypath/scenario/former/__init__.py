"""Old forms of scenarios and labs: read with a warning that shows the new form, and rewritten by `polypath upgrade`."""

from polypath.scenario.former.forms import FORMS
from polypath.scenario.former.reading import renewed, setting, tell
from polypath.scenario.former.rewriting import Rewritten, of_bytes, rewritten, told

__all__ = ["FORMS", "Rewritten", "of_bytes", "renewed", "rewritten", "setting", "tell", "told"]

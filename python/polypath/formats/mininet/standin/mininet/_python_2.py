"""Files in Python 2, which Python 3 does not run: named as such."""

from __future__ import annotations

_SYNTAX = (
    "Missing parentheses in call to",
    "multiple exception types must be parenthesized",
    "leading zeros in decimal integer literals",
    "inconsistent use of tabs and spaces",
)
_NAMES = frozenset({"basestring", "execfile", "long", "raw_input", "reduce", "unichr", "unicode", "xrange"})
_MODULES = frozenset(
    {
        *("ConfigParser", "HTMLParser", "Queue", "SocketServer", "StringIO", "Tkinter", "cPickle", "cStringIO"),
        *("commands", "httplib", "sets", "thread", "urllib2", "urlparse"),
    }
)
_ADVICE = "Mininet 2.3 and an import run Python 3"


def syntax(error: SyntaxError) -> str:
    """What is wrong with a file that does not parse."""
    message = str(error.msg)
    if message.startswith(_SYNTAX) or _is_old(error):
        return f"this is Python 2: {message}; {_ADVICE}"
    return message


def _is_old(error: SyntaxError) -> bool:
    """Whether the line has an operator or a statement that only Python 2 has."""
    text = (error.text or "").strip()
    raises = text.startswith("raise ") and "," in text and "(" not in text.partition(",")[0]
    return "<>" in text or "`" in text or raises or text.startswith(("print ", "exec "))


def runtime(error: BaseException) -> str | None:
    """The same of a name or a module that Python 3 lacks; None of anything else."""
    name = getattr(error, "name", None)
    if isinstance(error, NameError) and name in _NAMES:
        return f"this is Python 2: Python 3 has no '{name}'; {_ADVICE}"
    if isinstance(error, ModuleNotFoundError) and name in _MODULES:
        return f"this is Python 2: Python 3 has no module '{name}'; {_ADVICE}"
    if isinstance(error, AttributeError) and name in ("iteritems", "itervalues", "iterkeys", "has_key"):
        return f"this is Python 2: tables of Python 3 have no '{name}'; {_ADVICE}"
    return None

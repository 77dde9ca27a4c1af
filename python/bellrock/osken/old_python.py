"""Names programs of Python 2: half of the public programs for Ryu are such."""

from __future__ import annotations

import re
from pathlib import Path

MODULES = frozenset((
    "BaseHTTPServer", "ConfigParser", "HTMLParser", "Queue", "SimpleHTTPServer", "SocketServer", "StringIO", "Tkinter", "__builtin__",
    "cPickle", "cStringIO", "commands", "cookielib", "httplib", "thread", "urllib2", "urlparse", "xmlrpclib",
))
"""Modules of Python 2 that Python 3 has under other names."""

NAMES = frozenset(("basestring", "long", "raw_input", "reduce", "reload", "unichr", "unicode", "xrange"))
"""Names of Python 2 that Python 3 does not have."""

MESSAGES = (
    ("Missing parentheses in call to", "it has `print` or `exec` without parentheses"),
    ("multiple exception types must be parenthesized", "it has `except ..., error`"),
    ("leading zeros in decimal integer literals", "it has numbers such as 0644"),
    ("inconsistent use of tabs", "it mixes tabs and spaces"),
    ("parameters cannot be parenthesized", "it has parameters in parentheses"),
)
"""How the messages of errors begin, and what the program does that Python 3 refuses."""

LINES = (
    (re.compile(r"^\s*print\s+[^=(\s]"), "it has `print` without parentheses"),
    (re.compile(r"^\s*except\s+[^:(]+,\s*\w+\s*:"), "it has `except ..., error`"),
    (re.compile(r"^\s*raise\s+[\w.]+\s*,"), "it has `raise ..., text`"),
    (re.compile(r"<>"), "it has `<>`"),
    (re.compile(r"`"), "it has backticks"),
    (re.compile(r"\b(0[xX][0-9a-fA-F]+|\d+)[lL]\b"), "it has numbers such as 10L"),
    (re.compile(r"\b0[0-7]+\b"), "it has numbers such as 0644"),
)
"""What such lines look like, where the message says little."""


def explanation(error: BaseException) -> str | None:
    """Says that a program is written for Python 2, and what to do. `None`: nothing shows that it is."""
    if isinstance(error, SyntaxError):
        what, place = _of_syntax(error), f"{error.filename}:{error.lineno}"
    elif isinstance(error, ImportError):
        what = f"it imports {error.name}" if error.name in MODULES else None
        place = _place(error)
    elif isinstance(error, NameError):
        what = f"it uses {error.name}" if error.name in NAMES else None
        place = _place(error)
    else:
        return None
    if what is None:
        return None
    file = Path(place.rpartition(":")[0]).name
    return f"{place}: this program is written for Python 2: {what}\nconvert it: 2to3 -w {file} (2to3 is in Python up to 3.12)"


def _of_syntax(error: SyntaxError) -> str | None:
    for message, what in MESSAGES:
        if message in error.msg:
            return what
    if isinstance(error, IndentationError):
        return None
    text = error.text or ""
    return next((what for line, what in LINES if line.search(text)), None)


def _place(error: BaseException) -> str:
    """The file and line of the innermost frame that is not of the import."""
    place, frame = "the program", error.__traceback__
    while frame is not None:
        name = frame.tb_frame.f_code.co_filename
        if not name.startswith("<frozen"):
            place = f"{name}:{frame.tb_lineno}"
        frame = frame.tb_next
    return place


def install() -> None:
    """Lets the manager report why a file does not parse.

    os-ken takes the path for the name of a module then, and reports that there is none. A second call changes nothing.
    """
    # The manager must start without os-ken, to say what is missing.
    from os_ken import utils

    load = utils.import_module
    if load.__module__ == __name__:
        return

    def import_module(modname: str) -> object:
        try:
            return load(modname)
        except ImportError as error:
            if isinstance(error.__context__, SyntaxError):
                raise error.__context__ from None
            raise

    utils.import_module = import_module

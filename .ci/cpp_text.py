"""C++ sources as text: where comments and strings are. Knows no grammar beyond that."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

# A quote within a number separates digits, and one within a word belongs to a raw string.
TOKEN = re.compile(
    r"""
    (?P<comment> //[^\n]* | /\*.*?\*/ )
  | (?P<string> (?:\b(?:u8|u|U|L)?R"(?P<mark>[^()\\\s]{0,16})\(.*?\)(?P=mark)")
              | "(?:\\.|[^"\\\n])*" )
  | (?P<number> \b\d(?:'?[\w.])* )
  | (?P<character> '(?:\\.|[^'\\\n])+' )
    """,
    re.DOTALL | re.VERBOSE,
)
DIRECTIVE = re.compile(r"^[ \t]*#(?:[^\n\\]|\\.)*", re.MULTILINE | re.DOTALL)


class Piece(NamedTuple):
    """A comment or a string: its text, its first line from 1, its column from 0."""

    kind: str
    text: str
    line: int
    column: int


def pieces(text: str) -> Iterator[Piece]:
    """Yield the comments and the strings of a C++ source, in order."""
    for match in TOKEN.finditer(text):
        if match.lastgroup in {"comment", "string"} or match["string"] is not None:
            kind = "comment" if match["comment"] is not None else "string"
            start = match.start()
            line = text.count("\n", 0, start) + 1
            yield Piece(kind, match[0], line, start - (text.rfind("\n", 0, start) + 1))


def code_of(text: str) -> str:
    """Return a C++ source with blanks for comments, strings, characters and directives.

    Each remaining character keeps its line and its column.
    """
    return DIRECTIVE.sub(blanks, TOKEN.sub(blanks_unless_number, text))


def blanks_unless_number(match: re.Match[str]) -> str:
    """Return blanks for a token, or the token if it is a number."""
    return match[0] if match["number"] is not None else blanks(match)


def blanks(match: re.Match[str]) -> str:
    """Return as many blanks as a match has characters, with its line ends."""
    return re.sub(r"[^\n]", " ", match[0])

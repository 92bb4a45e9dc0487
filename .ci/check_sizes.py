"""Checks that no function and no file of the sources is longer than a reader can keep in mind.

    python .ci/check_sizes.py [--largest N]

A function has at most 50 lines: it fits on a screen, so its loops and early returns are seen
together. A file of src has at most 500 lines, a file of tests 700: a longer file holds more than
one topic, and its opening sentence no longer says what it is for. Tests get more because cases
stand one after the other and are read alone. No function and no file is exempt by name, but for the
stubs `_core.pyi` and `__init__.pyi`: one is generated, the other a list of names.

A function counts from the first line of its signature to its closing brace or last statement,
functions inside it included. Docstrings of Python do not count in src, neither for a function nor
for a file: they are pages of the reference, and examples in them are welcome.

`--largest N` prints the N longest files and functions.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from cpp_text import code_of

ROOT = Path(__file__).resolve().parents[1]
FUNCTION_LINES = 50
FILE_LINES = {"src": 500, "tests": 700}
STUBS = {"_core.pyi", "__init__.pyi"}
SUFFIXES = {".py", ".pyi", ".hpp", ".cpp"}
# A block that begins so holds declarations, not statements.
SCOPE = re.compile(r"(?:inline\s+)?namespace\b|extern\s*$|(?:class|struct|union|enum)\b")
ATTRIBUTE = re.compile(r"\[\[.*?\]\]|\balignas\s*\([^()]*\)", re.DOTALL)
NAME = re.compile(r"\boperator\b\s*[^\s\w(]+|(?:\w+(?:<[^<>()]*>)?::)*~?\w+(?=\s*\()")
LABELS = {"public", "protected", "private"}


class Length(NamedTuple):
    """The number of lines of a function or a file, and where it is."""

    n_lines: int
    place: str

    def __str__(self) -> str:
        return f"{self.place}: {self.n_lines} lines"


def functions_of_python(source: str, name: str) -> Iterator[Length]:
    """Yield the lengths of all functions of a Python source."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            n_lines = lines_of(node) - sum(map(lines_of, docstrings_in(node)))
            yield Length(n_lines, f"{name}:{node.lineno}: {node.name}")


def docstrings_in(tree: ast.AST) -> Iterator[ast.stmt]:
    """Yield the docstrings of a module, class or function, and of all within it."""
    for node in ast.walk(tree):
        documented = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
        if isinstance(node, documented) and ast.get_docstring(node) is not None:
            yield node.body[0]


def lines_of(node: ast.stmt) -> int:
    """Return the number of lines of a statement."""
    return (node.end_lineno or node.lineno) - node.lineno + 1


def functions_of_cpp(source: str, name: str) -> Iterator[Length]:
    """Yield the lengths of all functions of a C++ source that clang-format has formatted.

    Blocks of namespaces and classes are entered. Any other block outside of functions is the body
    of a function or lambda, or initializes a variable, a member or a default argument.
    """
    code = code_of(source)
    start = at = n_open = 0  # where a declaration begins, the place in the code, and open scopes
    while at < len(code):
        character, header = code[at], code[start:at]
        if character == "{" and is_scope(header):
            n_open += 1
            start = at + 1
        elif character == "{":
            end = end_of_block(code, at, name)
            if not initializes(header):
                yield Length(*measured(code, start, end, name))
                start = end + 1
            at = end
        elif character == "}":
            if n_open == 0:
                raise ValueError(f"{name}:{line_at(code, at)}: this brace closes no block")
            n_open -= 1
            start = at + 1
        elif character == ";" or (character == ":" and header.strip() in LABELS):
            start = at + 1
        at += 1
    if n_open:
        raise ValueError(f"{name}: {n_open} braces are not closed")


def is_scope(header: str) -> bool:
    """Return whether the block after a header is one of a namespace, a class or an enumeration."""
    return SCOPE.match(without_template(ATTRIBUTE.sub(" ", header))) is not None


def initializes(header: str) -> bool:
    """Return whether the block after a header is a part of a longer declaration.

    clang-format sets a space before the body of a function, and none before `{` of `member_{0}`.
    """
    return (
        not header[-1:].isspace()
        or header.rstrip().endswith(("=", ",", "("))
        or header.count("(") != header.count(")")
        or re.search(r"\bconcept\b", header) is not None
    )


def without_template(header: str) -> str:
    """Return a declaration without the template parameters and requirements that it begins with."""
    header = header.lstrip()
    while header.startswith("template"):
        depth = {"<": 0, "(": 0}
        for place, character in enumerate(header):
            if character in "()":
                depth["("] += 1 if character == "(" else -1
            elif character in "<>" and depth["("] == 0:
                depth["<"] += 1 if character == "<" else -1
                if depth["<"] == 0:
                    header = header[place + 1 :].lstrip()
                    break
        else:
            return header
    if header.startswith("requires"):  # clang-format gives what follows a line of its own
        header = header.partition("\n")[2].lstrip()
    return header


def end_of_block(code: str, at: int, name: str) -> int:
    """Return the place of the brace that closes the one at a place."""
    depth = 0
    for brace in re.compile("[{}]").finditer(code, at):
        depth += 1 if brace[0] == "{" else -1
        if depth == 0:
            return brace.start()
    raise ValueError(f"{name}:{line_at(code, at)}: this brace is not closed")


def measured(code: str, start: int, end: int, name: str) -> tuple[int, str]:
    """Return the number of lines of a function, and its place with its name."""
    start += len(code[start:end]) - len(code[start:end].lstrip())
    first, last = line_at(code, start), line_at(code, end)
    words = NAME.search(code, start, end)
    return last - first + 1, f"{name}:{first}: {words[0] if words else 'a function'}"


def line_at(code: str, place: int) -> int:
    """Return the line of a place, from 1."""
    return code.count("\n", 0, place) + 1


class Sources:
    """The files of src and tests of a checkout, with their lengths and those of their functions."""

    def __init__(self, root: Path) -> None:
        self.files: list[Length] = []
        self.functions: list[Length] = []
        self.problems: list[str] = []
        for folder, most in FILE_LINES.items():
            for path in sorted((root / folder).rglob("*")):
                if path.suffix in SUFFIXES and path.name not in STUBS:
                    self.read(path, str(path.relative_to(root)), most)
        for each in self.functions:
            if each.n_lines > FUNCTION_LINES:
                self.problems.append(f"{each}, a function has at most {FUNCTION_LINES}")

    def read(self, path: Path, name: str, most: int) -> None:
        """Measure a file, and its functions if it is one of src."""
        text = path.read_text(encoding="utf-8")
        n_lines = len(text.splitlines())
        if path.suffix == ".py" and name.startswith("src/"):
            n_lines -= sum(map(lines_of, docstrings_in(ast.parse(text))))
        length = Length(n_lines, name)
        self.files.append(length)
        if length.n_lines > most:
            self.problems.append(f"{length}, a file of {name.split('/')[0]} has at most {most}")
        if name.startswith("src/"):
            of_language = functions_of_python if ".py" in path.suffix else functions_of_cpp
            self.functions += of_language(text, name)


def main(arguments: list[str]) -> int:
    """Print all problems; return 1 if there are any."""
    sources = Sources(ROOT)
    print(*sources.problems, sep="\n", end="\n" if sources.problems else "")
    if arguments[:1] == ["--largest"]:
        for lengths in (sources.files, sources.functions):
            print(*sorted(lengths, reverse=True)[: int(arguments[1])], sep="\n")
    counts = f"{len(sources.files)} files, {len(sources.functions)} functions"
    print(f"{counts}, {len(sources.problems)} too long")
    return 1 if sources.problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""Checks that comments, docstrings, errors and pages avoid wordings that hide their subject.

    python .ci/check_words.py [PATH...]

A comment or docstring must not begin with a genitive ("of a task"), a relative clause ("what ...")
or a reference to its neighbour ("the same"): it then has no subject, or breaks when the neighbour
moves. A comment behind code is a comment of its own, and usually begins in lower case, so case does
not matter. Two phrases are looked for everywhere: one stands in for the name of a number, the other
for the word of the glossary (see `PHRASES`).

Prints path:line: text: why. Without paths, reads all sources and pages. Commented-out code is not
the topic, and ruff and clang-format look at form.
"""

from __future__ import annotations

import ast
import io
import re
import sys
import tokenize
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from cpp_text import Piece, pieces

ROOT = Path(__file__).resolve().parents[1]
FOLDERS = ("src", "tests", "benchmarks", "experiments", "examples", "docs", ".ci")
BEGINNINGS = {
    "the same": "say what it is: the neighbour may move",
    "what": "begin with the subject",
    "of": "a genitive needs its head",
    "those": "name them",
    "as above": "say what it is: the neighbour may move",
}
PHRASES = {
    r"so\s+many": "name the number",
    r"samples\s+that\s+calibrate": "the glossary calls them calibrators",
}
BEGINNING = re.compile(rf"({'|'.join(BEGINNINGS)})\b", re.IGNORECASE)
PHRASE = re.compile(rf"\b(?:{'|'.join(f'({each})' for each in PHRASES)})\b", re.IGNORECASE)
MARKS = re.compile(r"^[ \t]*(?:///?<?|//!<?|/\*[*!]?|\*/|\*(?!\w)|#[:!]?)?[ \t]*", re.MULTILINE)


class Text(NamedTuple):
    """A comment block, docstring, error or page, its first line, and whether it must begin well."""

    text: str
    line: int
    is_sentence: bool


def problems_in(path: Path, name: str) -> list[str]:
    """Return what a file says that it should not, as path:line: text: why."""
    text = path.read_text(encoding="utf-8")
    if path.suffix in {".py", ".pyi"}:
        texts: Iterable[Text] = texts_of_python(text)
    elif path.suffix == ".md":
        texts = [Text(text, 1, is_sentence=False)]
    else:
        texts = texts_of_cpp(text)
    found = sorted(each for text in texts for each in problems_of(text))
    return [f"{name}:{line}: {shown}: {why}" for line, shown, why in found]


def problems_of(text: Text) -> Iterator[tuple[int, str, str]]:
    """Yield line, text and reason of each wording that a text should avoid."""
    if text.is_sentence:
        first = text.text.lstrip()
        line = text.line + text.text[: len(text.text) - len(first)].count("\n")
        if begins := BEGINNING.match(first):
            yield (
                line,
                first.split("\n")[0],
                f"begins {begins[1]!r}; {BEGINNINGS[begins[1].lower()]}",
            )
    for match in PHRASE.finditer(text.text):
        start = text.text.rfind("\n", 0, match.start()) + 1
        end = text.text.find("\n", match.end())
        shown = " ".join(text.text[start : None if end < 0 else end].split())
        line = text.line + text.text.count("\n", 0, match.start())
        reason = list(PHRASES.values())[(match.lastindex or 1) - 1]
        yield line, shown, f"{' '.join(match[0].split())!r}; {reason}"


def texts_of_python(source: str) -> Iterator[Text]:
    """Yield the comment blocks, docstrings and errors of a Python source."""
    comments = (
        Piece("comment", token.string, token.start[0], token.start[1])
        for token in tokenize.generate_tokens(io.StringIO(source).readline)
        if token.type == tokenize.COMMENT
    )
    yield from blocks_of(comments)
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            docstring = ast.get_docstring(node, clean=False)
            if docstring is not None:
                yield Text(docstring, node.body[0].lineno, is_sentence=True)
        elif isinstance(node, ast.Raise):
            for part in ast.walk(node):
                if isinstance(part, ast.Constant) and isinstance(part.value, str):
                    yield Text(part.value, part.lineno, is_sentence=False)


def texts_of_cpp(source: str) -> Iterator[Text]:
    """Yield the comment blocks and strings of a C++ source."""
    found = list(pieces(source))
    yield from blocks_of(piece for piece in found if piece.kind == "comment")
    for piece in found:
        if piece.kind == "string":
            yield Text(piece.text, piece.line, is_sentence=False)


def blocks_of(comments: Iterable[Piece]) -> Iterator[Text]:
    """Yield comments as blocks: lines that follow each other in one column, up to an empty one."""
    block: list[Piece] = []
    for piece in comments:
        words = MARKS.sub("", piece.text)
        continues = block and (piece.line, piece.column) == (
            block[-1].line + block[-1].text.count("\n") + 1,
            block[-1].column,
        )
        if block and (not continues or not words.strip()):
            yield text_of(block)
            block = []
        if words.strip():
            block.append(piece)
    if block:
        yield text_of(block)


def text_of(block: list[Piece]) -> Text:
    """Return the text of a block of comments, without their marks."""
    lines = [MARKS.sub("", piece.text).rstrip() for piece in block]
    return Text("\n".join(lines).removesuffix("*/").rstrip(), block[0].line, is_sentence=True)


def files_in(root: Path) -> list[Path]:
    """Return all sources and pages of a checkout."""
    files = [*root.glob("*.md"), *root.glob("*.py")]
    for folder in FOLDERS:
        suffixes = {".py", ".md"} if folder == "docs" else {".py", ".pyi", ".hpp", ".cpp"}
        files += [path for path in (root / folder).rglob("*") if path.suffix in suffixes]
    return sorted(files)


def main(names: list[str]) -> int:
    """Print all problems; return 1 if there are any."""
    files = [Path(name).resolve() for name in names] or files_in(ROOT)
    problems = [
        problem for path in files for problem in problems_in(path, str(path.relative_to(ROOT)))
    ]
    print(*problems, sep="\n", end="\n" if problems else "")
    print(f"{len(files)} files, {len(problems)} problems of words")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""The check of wordings (.ci/check_words.py) finds what it is there to find."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="module")
def check_words():
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(ROOT / ".ci"))
        return importlib.import_module("check_words")


def problems(check_words, folder, suffix, text):
    """The problems of a file with this text, without its name."""
    path = folder / f"file{suffix}"
    path.write_text(text)
    return [each.removeprefix("F:") for each in check_words.problems_in(path, "F")]


def test_the_pieces_of_a_cpp_source_are_told_apart(check_words):
    source = 'auto a = "// b"; // "c"\nint n = 1\'000; /* \'d\n*/ auto e = R"x(\n//)x";\n'
    assert [(each.kind, each.line) for each in check_words.pieces(source)] == [
        ("string", 1),
        ("comment", 1),
        ("comment", 2),
        ("string", 3),
    ]


@pytest.mark.parametrize("words", ["The same.", "What is", "Of a", "Those of", "As above,"])
@pytest.mark.parametrize(
    ("suffix", "line", "text"),
    [
        (".py", 1, "# {}\n"),
        (".py", 2, "x = 1\ny = 2  # {}\n"),
        (".py", 2, "# A sentence.\ny = 2  # {}\n"),
        (".py", 3, "# A sentence.\n#\n# {}\n"),
        (".py", 1, '"""{}"""\n'),
        (".py", 3, 'class C:\n    def f(self):\n        """{}\n\n        More.\n        """\n'),
        (".cpp", 1, "// {}\n"),
        (".cpp", 1, "/// {}\n"),
        (".cpp", 1, "/* {} */\n"),
        (".hpp", 2, 'const char* s = "//";\nint a;  // {}\n'),
        (".hpp", 3, "// A sentence.\n\n// {}\n"),
    ],
)
def test_a_comment_without_a_subject_is_found(check_words, tmp_path, suffix, line, text, words):
    for written in (words, words.lower()):
        (found,) = problems(check_words, tmp_path, suffix, text.format(written))
        assert found.startswith(f"{line}: {written}: begins")


@pytest.mark.parametrize("phrase", ["so many", "So many", "samples that calibrate"])
@pytest.mark.parametrize(
    ("suffix", "text"),
    [
        (".py", "# A tree, and\n# then {} others.\n"),
        (".py", '"""A page.\n\nIt has {} lines.\n"""\n'),
        (".py", 'raise ValueError(f"no {{x}}: {}")\n'),
        (".cpp", "int n;  // in {}\n"),
        (".cpp", 'throw std::invalid_argument("at {} places");\n'),
        (".md", "# Page\n\nWith {} words.\n"),
    ],
)
def test_a_phrase_for_a_term_is_found_across_lines(check_words, tmp_path, suffix, text, phrase):
    (found,) = problems(check_words, tmp_path, suffix, text.format(phrase))
    assert phrase in found
    if "\n#" in text or suffix == ".md":
        mark = "\n# " if suffix == ".py" else "\n"
        (found,) = problems(check_words, tmp_path, suffix, text.format(phrase.replace(" ", mark)))
        assert repr(phrase) in found


@pytest.mark.parametrize(
    ("suffix", "text"),
    [
        (".py", "# A tree.\n# What it holds.\n"),
        (".py", "x = 1  # samples of a tree,\n       # of which there are some\n"),
        (".py", "# Offsets. Whatever. Often.\n"),
        (".py", "x = '# Of a task, so many'\n"),
        (".py", "# Also many samples. Samples that calibrated.\n"),
        (".cpp", "// A tree.\n// Those of others.\n"),
        (".cpp", "int a;  // a number\n        // of samples\n"),
        (".cpp", 'auto s = "// Of a task"; auto c = \'"\'; // A task\n'),
        (".cpp", 'auto s = R"(\n// Of a task\n)";\n'),
        (".cpp", "auto n = 1'000;  // it's a number\nint what;\n"),
        (".md", "What is a tree?\n"),
    ],
)
def test_other_words_are_allowed(check_words, tmp_path, suffix, text):
    assert problems(check_words, tmp_path, suffix, text) == []


def test_the_sources_keep_to_the_wordings(check_words):
    files = check_words.files_in(ROOT)
    assert len(files) > 500
    found = [each for path in files for each in check_words.problems_in(path, str(path))]
    assert found == []


def test_all_sources_and_pages_are_read(check_words):
    names = {str(path.relative_to(ROOT)) for path in check_words.files_in(ROOT)}
    assert names > {
        "README.md",
        "CONTRIBUTING.md",
        "docs/paper.md",
        "conftest.py",
        ".ci/check_words.py",
        "src/onlineforest/_core.pyi",
        "tests/core/main.cpp",
        "benchmarks/cases.py",
        "experiments/paper/report.py",
    }

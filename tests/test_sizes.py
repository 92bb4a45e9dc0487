"""The check of lengths (.ci/check_sizes.py) finds what it is there to find."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="module")
def check_sizes():
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(ROOT / ".ci"))
        return importlib.import_module("check_sizes")


CPP = """\
// What begins with { and "( is no code.
#define OPENS {
namespace onlineforest {
enum class Side : bool { left, right };
constexpr std::array sides = {Side::left, Side::right};
template <class T>
concept Counted = requires(T t) {
  { t.count() } -> std::same_as<int>;
};

template <class T, int N = (2 > 1)>
class Tree : public Base<T> {
 public:
  explicit Tree(Options options = {})
      : options_{options}, text_("{") {
    grow();
  }
  int size() const { return 'a' == '{' ? 1'000 : 2; }

 private:
  struct Node {
    int left = 0;
    std::vector<int> counts{0, 0};
    bool operator==(const Node& other) const {
      return left == other.left;
    }
  };
};

template <class T>
auto Tree<T>::walk(int at) -> int {
  const auto step = [&] {
    return at;
  };
  return step();
}

const auto twice = [](int x) {
  return 2 * x;
};
}  // namespace onlineforest
"""
PYTHON = '''\
def outer():
    """A page

    of the reference.
    """

    @cached
    def inner(
        x,
    ):
        """A line."""
        return x

    return inner
'''


def test_functions_of_cpp_are_counted_from_signature_to_brace(check_sizes):
    found = list(check_sizes.functions_of_cpp(CPP, "a.hpp"))
    assert [(each.place, each.n_lines) for each in found] == [
        ("a.hpp:14: Tree", 4),
        ("a.hpp:18: size", 1),
        ("a.hpp:24: operator==", 3),
        ("a.hpp:30: Tree<T>::walk", 7),
        ("a.hpp:38: a function", 3),
    ]


def test_functions_of_python_are_counted_without_docstrings(check_sizes):
    found = list(check_sizes.functions_of_python(PYTHON, "a.py"))
    assert [(each.place, each.n_lines) for each in found] == [
        ("a.py:1: outer", 9),
        ("a.py:8: inner", 4),
    ]


@pytest.mark.parametrize("text", ["void f() {\n", "}\n", "namespace a {\n"])
def test_braces_that_do_not_match_are_an_error(check_sizes, text):
    with pytest.raises(ValueError, match="brace"):
        list(check_sizes.functions_of_cpp(text, "a.cpp"))


def write(folder, name, text):
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(text)


@pytest.mark.parametrize(
    ("name", "text", "most"),
    [
        ("src/core/a.cpp", "void f() {{\n{}}}\n".format("  g();\n" * 49), 50),
        ("src/onlineforest/a.py", "def f():\n" + "    g()\n" * 50, 50),
        ("src/core/a.hpp", "int a;\n" * 501, 500),
        ("src/onlineforest/a.py", "a = 1\n" * 501, 500),
        ("tests/models/test_a.py", "a = 1\n" * 701, 700),
        ("tests/core/test_a.cpp", "int a;\n" * 701, 700),
    ],
)
def test_one_line_too_many_is_found(check_sizes, tmp_path, name, text, most):
    write(tmp_path, name, text)
    (problem,) = check_sizes.Sources(tmp_path).problems
    assert problem.startswith(name)
    assert f"{most + 1} lines" in problem
    assert problem.endswith(f"at most {most}")
    lines = text.splitlines(keepends=True)
    write(tmp_path, name, "".join([lines[0], *lines[2:]]))
    assert check_sizes.Sources(tmp_path).problems == []


def test_docstrings_stubs_and_functions_of_tests_do_not_count(check_sizes, tmp_path):
    docstring = '"""A page.\n' + "\n" * 600 + '"""\n'
    write(tmp_path, "src/onlineforest/a.py", docstring + "a = 1\n" * 400)
    write(tmp_path, "src/onlineforest/_core.pyi", "a: int\n" * 600)
    write(tmp_path, "tests/test_a.py", "def test_a():\n" + "    g()\n" * 60)
    assert check_sizes.Sources(tmp_path).problems == []


def test_the_sources_keep_to_the_bounds(check_sizes):
    assert check_sizes.Sources(ROOT).problems == []


def test_all_functions_are_found(check_sizes):
    places = [each.place for each in check_sizes.Sources(ROOT).functions]
    assert sum(".py" in place for place in places) > 500
    assert sum("src/core" in place for place in places) > 500
    assert sum("src/bindings" in place for place in places) > 50
    assert sum("a function" in place for place in places) < len(places) / 50

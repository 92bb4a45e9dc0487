"""Modules are imported when a name of theirs is asked for, and shards need few."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import onlineforest


def modules_after(code):
    """The modules a new process has imported after some code."""
    code = f"{code}\nimport sys\nprint(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


def test_a_shard_does_not_import_the_estimators():
    modules = modules_after("import onlineforest._shards.shard")
    assert "onlineforest._core" in modules
    assert not modules & {
        "sklearn",
        "pandas",
        "scipy",
        "matplotlib",
        "ray",
        "onlineforest._forests.base",
    }


def test_importing_the_package_imports_neither_numpy_nor_sklearn():
    modules = modules_after("import onlineforest; onlineforest.__version__; dir(onlineforest)")
    assert not modules & {"numpy", "sklearn"}


def test_the_help_of_the_command_imports_neither_numpy_nor_sklearn():
    code = (
        "from onlineforest._cli import build_command\n"
        "build_command()(['--help'], standalone_mode=False)"
    )
    modules = modules_after(code)
    assert "onlineforest._cli.commands" in modules
    assert not modules & {"numpy", "sklearn", "pyarrow", "onlineforest._cli.train"}


def test_no_private_name_of_another_package_is_imported():
    """Private names may change with each release, and would tie this package to one."""
    own = {"onlineforest", *sys.stdlib_module_names}
    imported = [
        name
        for path in Path(onlineforest.__file__).parent.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        for name in imported_by(node)
    ]
    others = {name for name in imported if name.split(".")[0] not in own}
    assert {"sklearn.base.BaseEstimator", "numpy", "river.base"} <= others
    assert [name for name in sorted(others) if "._" in name or name.startswith("_")] == []


def imported_by(node):
    """The full names that a statement imports."""
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if isinstance(node, ast.ImportFrom) and node.level == 0:
        return [f"{node.module}.{alias.name}" for alias in node.names]
    return []


def test_the_stub_names_the_same_modules():
    """`__init__.pyi` is what type checkers read, `_NAMES` is what is imported."""
    stub = ast.parse(Path(onlineforest.__file__).with_suffix(".pyi").read_text())
    imports = {
        node.module: tuple(alias.name for alias in node.names)
        for node in stub.body
        if isinstance(node, ast.ImportFrom)
    }
    assert imports.pop(None) == ("plot",)
    assert imports == onlineforest._NAMES
    (names,) = (node.value for node in stub.body if isinstance(node, ast.Assign))
    assert ast.literal_eval(names) == onlineforest.__all__


def test_all_public_names_can_be_imported():
    code = "from onlineforest import *; MondrianForestClassifier, merge, load, plot.partition"
    assert "onlineforest._forests.orderfree.merging" in modules_after(code)
    assert set(onlineforest.__all__) <= set(dir(onlineforest))
    for name in onlineforest.__all__:
        assert getattr(onlineforest, name) is not None
    with pytest.raises(AttributeError, match="module 'onlineforest' has no attribute 'nonsense'"):
        onlineforest.nonsense  # noqa: B018

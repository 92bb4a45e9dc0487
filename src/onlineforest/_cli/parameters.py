"""The parameters of the estimators as options of commands.

Names, types, defaults and descriptions come from the sources of the estimators. Must not import the
estimators: scikit-learn takes longer to import than the help to print.
"""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import click

import onlineforest
from onlineforest._cli.commands import option, options

ESTIMATORS: Mapping[str, Mapping[str, str]] = {  # kind, task and name of the estimator
    "order-free": {"classify": "OnlineForestClassifier", "regress": "OnlineForestRegressor"},
    "mondrian": {"classify": "MondrianForestClassifier"},
}
NAMES = {"order-free": "order-free", "mondrian": "Mondrian"}  # kinds of forests, in sentences
DEFAULT_SEED = 0
_FLAGS = {"n_estimators": "trees", "random_state": "seed", "n_jobs": "jobs", "offsets": "offset"}
_METAVARS = {"offsets": "COLUMN=NUMBER", "class_weight": "CLASS=NUMBER"}
_OTHERWISE = {"categorical_features"}  # --categorical and --numeric of the data set it
_CLAUSE_END = re.compile(r"(?<=[.])\s|(?<=.{25})[:;]\s")
_LITERALS = re.compile(r"Literal\[(.*?)\]")


@dataclass(frozen=True)
class Parameter:
    """A parameter of one or more estimators."""

    name: str
    types: frozenset[str]  # such as "int", "None", "Mapping[Any, float]"
    defaults: Mapping[str, str]  # estimator and source text
    description: str  # in the first estimator that has it

    @property
    def flag(self) -> str:
        """Name of the option, without dashes at the start."""
        return _FLAGS.get(self.name, self.name.replace("_", "-"))

    @property
    def key(self) -> str:
        """Name of the option among the arguments of a command."""
        return self.flag.replace("-", "_")

    @property
    def literals(self) -> list[str]:
        """Texts that the parameter may be."""
        found = (_LITERALS.fullmatch(each) for each in self.types)
        return [ast.literal_eval(match[1]) for match in found if match]

    @property
    def is_mapping(self) -> bool:
        """Whether the option gives numbers to names, and may be given several times."""
        return any(each.startswith("Mapping[") for each in self.types)

    @property
    def audience(self) -> str:
        """The forests that have the parameter; empty if all have it."""
        parts, n_lacking = [], 0
        for kind, tasks in ESTIMATORS.items():
            having = [task for task, name in tasks.items() if name in self.defaults]
            n_lacking += len(tasks) - len(having)
            suffix = "" if len(having) == len(tasks) else f" that {' or '.join(having)}"
            parts += [f"{NAMES[kind]} forests{suffix}"] if having else []
        return " and ".join(parts) if n_lacking else ""

    @property
    def help(self) -> str:
        """The first clause of the description, and defaults."""
        text = self.description.removeprefix("A dict gives ").replace(f"`{self.name}`", "N")
        clause = _CLAUSE_END.split(text)[0].replace("`", "").rstrip(".")
        words = [f"{clause[0].upper()}{clause[1:]}."]
        words += [f"May also be {' or '.join(self.literals)}."] if self.literals else []
        words += ["May be given several times."] if self.is_mapping else []
        words += [f"For {self.audience}."] if self.audience else []
        return " ".join([*words, *self._default_words()])

    def _default_words(self) -> list[str]:
        if self.name == "random_state":
            return [f"Default: {DEFAULT_SEED}."]
        if set(self.defaults.values()) == {"None"}:
            return []
        texts = {
            name: text.removeprefix("math.").strip("'\"") for name, text in self.defaults.items()
        }
        common = next(iter(texts.values()))
        others = [f"{text} for {name}" for name, text in texts.items() if text != common]
        return [f"Default: {', '.join([common, *others])}."]

    def convert(self, text: str) -> Any:
        """The value of the parameter that a text stands for; raises ValueError if there is none."""
        if text in self.literals:
            return text
        for name, kind in (("int", int), ("float", float)):
            with suppress(ValueError):
                if name in self.types:
                    return kind(text)
        if "ArrayLike" in self.types and (re.match(r"[-+\d.]", text) or "," in text):
            return [float(each) for each in text.split(",")]
        if "str" in self.types:
            return text
        raise ValueError(text)


@cache
def all_parameters() -> Mapping[str, Parameter]:
    """The parameters of all estimators by their names, in the order of the signatures."""
    found: dict[str, Parameter] = {}
    for tasks in ESTIMATORS.values():
        for estimator in tasks.values():
            for each in _parameters_of(estimator):
                old = found.get(each.name, each)
                found[each.name] = Parameter(
                    each.name,
                    old.types | each.types,
                    {**old.defaults, **each.defaults},
                    old.description,
                )
    return {name: each for name, each in found.items() if name not in _OTHERWISE}


def _parameters_of(estimator: str) -> Iterator[Parameter]:
    """The parameters in the source of an estimator, with their descriptions in its docstring."""
    modules: Mapping[str, str] = vars(onlineforest)["_MODULE_OF"]
    path = modules[estimator].replace(".", "/") + ".py"
    source = (Path(onlineforest.__file__).parent / path).read_text(encoding="utf-8")
    tree = ast.parse(source).body
    owner = next(each for each in tree if isinstance(each, ast.ClassDef) and each.name == estimator)
    descriptions = _descriptions(ast.get_docstring(owner) or "")
    init = next(
        each for each in owner.body if isinstance(each, ast.FunctionDef) and each.name == "__init__"
    )
    given = init.args
    arguments = [*given.args[1:], *given.kwonlyargs]
    for each, default in zip(arguments, [*given.defaults, *given.kw_defaults], strict=True):
        assert each.annotation is not None
        assert default is not None  # each parameter has one
        types = frozenset(ast.unparse(each.annotation).split(" | "))
        defaults = {estimator: ast.unparse(default)}
        yield Parameter(each.arg, types, defaults, descriptions[each.arg])


def _descriptions(docstring: str) -> dict[str, str]:
    """The description of each parameter in a docstring of numpydoc's form."""
    section = re.split(r"\n\w[\w ]*\n-+\n", docstring.split("\nParameters\n----------\n")[1])[0]
    entries = re.findall(r"^(\w+) : .*\n((?:(?:[ ].*)?\n?)*)", section, re.MULTILINE)
    return {name: " ".join(text.split()) for name, text in entries}


# Options


def parameter_options(section: str) -> Callable[[Any], Any]:
    """An option for each parameter; None stands for one that is not given."""
    return options(*(_option_of(each, section) for each in all_parameters().values()))


def _option_of(parameter: Parameter, section: str) -> Callable[[Any], Any]:
    flag = f"--{parameter.flag}"
    if parameter.types == {"bool"}:
        names = f"{flag}/--no-{parameter.flag}"
        return option(names, section=section, default=None, help=parameter.help)

    def callback(_: click.Context, __: click.Parameter, given: Any) -> Any:
        if parameter.is_mapping:
            return _mapping_of(parameter, given)
        return None if given is None else _converted(parameter, given)

    return option(
        flag,
        metavar=_METAVARS.get(parameter.name, "N"),
        multiple=parameter.is_mapping,
        callback=callback,
        section=section,
        help=parameter.help,
    )


def _converted(parameter: Parameter, text: str) -> Any:
    try:
        return parameter.convert(text)
    except ValueError:
        wanted = " or ".join(["a number", *parameter.literals])
        raise click.BadParameter(f"{text!r} is not {wanted}.") from None


def _mapping_of(parameter: Parameter, given: tuple[str, ...]) -> str | dict[str, float] | None:
    """The number of each name, or a text that the parameter may be; None if nothing is given."""
    if len(given) == 1 and given[0] in parameter.literals:
        return given[0]
    numbers: dict[str, float] = {}
    for text in given:
        name, number = text.rpartition("=")[::2]
        try:
            value = float(number)
        except ValueError:
            value = math.nan
        if not name or not math.isfinite(value):
            raise click.BadParameter(f"{text!r} is not {_METAVARS[parameter.name]}.")
        if name in numbers:
            both = f"{numbers[name]:.16g} and {value:.16g}"
            raise click.BadParameter(
                f"{name!r} has two {parameter.flag.replace('-', ' ')}s, {both}."
            )
        numbers[name] = value
    return numbers or None

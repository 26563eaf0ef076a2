#!/usr/bin/env python3
"""Writes podsim/_api.pyi: the verbs with their keywords, from the module's own list of options, for editors and type checkers. All else is annotated where it is written.

usage: PYTHONPATH=build/python /usr/bin/python3 tools/python/scripts/make_stubs.py
"""

import inspect
import pathlib
import textwrap

import podsim
from podsim import _help
from podsim._words import options

STUBS = pathlib.Path(__file__).resolve().parents[1] / "podsim" / "_api.pyi"

HEAD = '''# Written by tools/python/scripts/make_stubs.py from the options of the command: run that instead of editing this.
import os
from typing import Any, Callable, Dict, Literal, Mapping, Optional, Protocol, Sequence, Tuple, Union

from ._objects import Machine, Plan, Schedule
from ._results import Calibration, Check, Comparison, Result, Run, TrainingTuning, Tuning

Progress = Optional[Callable[[str], Any]]
_What = Union[Machine, Schedule, Plan, str, None]
_Path = Union[str, os.PathLike[str]]
_Value = Union[str, int, float]
_Values = Union[_Value, Sequence[_Value], Sequence[Sequence[_Value]]]  # one, several, several lists
_Pairs = Union[_Values, Mapping[str, Union[_Value, Sequence[_Value]]]]

class _JaxMesh(Protocol):  # jax.sharding.Mesh
    @property
    def axis_names(self) -> Tuple[Any, ...]: ...
    @property
    def devices(self) -> Any: ...

class _JaxStage(Protocol):  # jax.stages.Lowered, Compiled
    def as_text(self) -> str: ...

_Module = Union[_Path, bytes, _JaxStage]  # a file, or what is in it
_Mesh = Union[str, Mapping[str, int], _JaxMesh]
_Extents = Union[str, Sequence[int]]
_Gemm = Union[str, Tuple[int, int, int], Tuple[int, int, int, str], Mapping[str, Union[int, str]]]
_Spec = Union[str, Sequence[Union[None, str, Sequence[str]]]]

def _call(command: Tuple[str, ...], keywords: Mapping[str, Any], progress: Progress = ..., format: str = ..., **how: Any) -> Tuple[int, str, str, Any]: ...
def machine(name_or_file: _Path, values: Optional[Mapping[str, _Value]] = ...) -> Machine: ...
'''

# Of keywords that take objects, and of forms whose values are more than texts and numbers.
OBJECTS = {"machine": "Union[Machine, _Path]", "base": "Union[Machine, _Path]", "schedule": "Union[Schedule, _Path]", "plan": "Union[Plan, _Path]", "hlo": "_Module"}
FORMS = {
    "extents": "_Extents",
    "mesh": "_Mesh",
    "gemm": "_Gemm",
    "sharding": "_Spec",
    "shapes": "Union[str, Mapping[str, _Extents]]",
    "shardings": "Union[str, Mapping[str, _Spec]]",
}


def type_of(option, verb):
    """Of a keyword's values."""
    if option.kind == "flag" or option.on_off:
        return "bool"
    if option.choices:
        return f"Literal[{', '.join(map(repr, option.choices))}]"
    kind = OBJECTS.get(option.name) if option.names_files else FORMS.get(option.form)
    if kind is not None:
        several = (verb == "compare" and option.name in ("machine", "slice", "mesh")) or (verb == "tune" and option.name == "gemm")
        return f"Union[{kind}, Sequence[{kind}]]" if several else kind
    if option.names_files:
        return "Union[_Path, Sequence[_Path]]" if option.kind == "many" else "_Path"
    if option.form == "count":
        return "Union[int, str]"
    return "_Pairs" if option.takes_pairs else "_Values"


def declaration(verb):
    """A verb as `def`, each keyword with the type of its values."""
    own = inspect.signature(getattr(podsim, verb))
    written = str(own.replace(parameters=[each for each in own.parameters.values() if each.kind is not each.VAR_KEYWORD])).replace("'", "").replace(" = None", " = ...")
    given, answer = written[1:].rsplit(") -> ", 1)
    if "*" not in given:
        given += ", *" if given else "*"
    keywords = [f"{option.name}: Optional[{type_of(option, verb)}] = ..." for option in options(*_help.command_of(verb)).values() if option.name not in own.parameters]
    lines = textwrap.wrap(", ".join([given, *keywords]), width=156, break_long_words=False, break_on_hyphens=False)
    return f"def {verb}(\n" + "".join(f"    {line}\n" for line in lines) + f") -> {answer}: ...\n"


def stubs():
    return HEAD + "".join(map(declaration, _help.VERBS))


if __name__ == "__main__":
    STUBS.write_text(stubs(), encoding="utf-8")

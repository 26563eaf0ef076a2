"""What the verbs take: from the command's own list of options, when somebody asks."""

from __future__ import annotations

import difflib
from typing import Any, Dict, Tuple

from . import _core
from ._errors import InputError, in_python
from ._words import Option, options, shown

# What a value of Python may be, beside the text that the command takes.
_TAKES = {"machine": "a podsim.Machine, a name or a file", "set": 'a dict: {"link.bandwidth": "45GB/s"}', "schedule": "a podsim.Schedule or a file", "plan": "a podsim.Plan or a file",
          "hlo": "a file, the text of a module, bytes, or a jax Lowered or Compiled"}
_TAKES_BY_FORM = {
    "extents": '"4x8x8" or (4, 8, 8)', "mesh": '{"row": 32, "col": 8}; with hlo also a jax Mesh', "gemm": '(m, n, k), (m, n, k, "f32") or a dict', "shapes": '{"A": (48, 24)}',
    "shardings": '{"A": ("x", None)}: PartitionSpecs', "flag": "True",
}


def _entry(option: Option) -> str:
    takes = _TAKES.get(option.name) or _TAKES_BY_FORM.get(option.form)
    if takes is None:
        takes = option.value + (", or a list of them" if option.kind == "many" else "")
    default = f" (default {option.default})" if option.default is not None else ""
    return f"{option.name}: {takes}{default}\n    {in_python(option.help)}"


def command_of(function: str) -> Tuple[str, ...]:
    """The command behind a function: show_mesh is `show mesh`."""
    if function == "schedule":
        return ("show", "schedule")
    return tuple(function.split("_", 1)) if function.startswith("show_") else (function,)


def text_of(function: str) -> str:
    return "\n".join(_entry(option) for option in options(*command_of(function)).values())


VERBS = ("run", "check", "compare", "tune", "calibrate", "validate", "diagnose", "diff", "report", "schedule", "show_machine", "show_topology", "show_mesh", "show_plan", "show_program",
         "show_sharding", "show_training", "show_pipeline", "show_hlo")


def help(function: Any = "run") -> None:
    """Print what a verb takes: ``podsim.help("run")``, ``podsim.help(podsim.tune)``. Examples are the command's."""
    name = function if isinstance(function, str) else getattr(function, "__name__", shown(function))
    if name not in VERBS:
        near = difflib.get_close_matches(name, VERBS, 3)
        hint = ", did you mean " + " or ".join(f'"{verb}"' for verb in near) + "?" if near else f"; there are {', '.join(VERBS)}"
        raise InputError(f'there is no verb "{name}"{hint}', argument="function")
    command = command_of(name)
    print(f"podsim.{name}(...): keywords\n\n{text_of(name)}\n\nThe command:\n\n{_core.usage('_'.join(command))}")


def describe_verbs(functions: Dict[str, Any]) -> None:
    """Adds the keywords to the verbs' docstrings."""
    for name in VERBS:
        function = functions[name]
        function.__doc__ = f"{function.__doc__}\n\nKeywords:\n\n{text_of(name)}\n"

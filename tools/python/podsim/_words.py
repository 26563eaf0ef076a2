"""Values of Python as the words of a command: what a keyword takes, by the command's own list of options."""

from __future__ import annotations

import difflib
import functools
import numbers
import os
from typing import Any, Dict, Iterable, List, Mapping, NamedTuple, Optional, Sequence, Tuple

from . import _core
from ._errors import InputError, keyword_of


class Option(NamedTuple):
    """An option of a command, as ``podsim VERB --help`` has it."""

    name: str  # as a keyword: slice_count; pass_ and from_, as Python has these words itself
    kind: str  # flag, one, many
    value: str
    default: Optional[str]
    choices: List[str]
    help: str

    @property
    def word(self) -> str:
        """As the command has it: slice-count."""
        return self.name.rstrip("_").replace("_", "-")

    @property
    def on_off(self) -> bool:
        return self.value == "on|off"


# What belongs to a terminal.
_NOT_IN_PYTHON = {"help", "quiet", "format"}


@functools.lru_cache(maxsize=None)
def options(*words: str) -> Dict[str, Option]:
    """The options of a command by their keywords, in the order of its help."""
    found = (Option(keyword_of(name), *rest) for name, *rest in _core.options(list(words)))
    return {option.name: option for option in found if option.name not in _NOT_IN_PYTHON}


def _number(value: numbers.Number) -> str:
    if isinstance(value, numbers.Integral):
        return str(int(value))
    if isinstance(value, numbers.Real):
        return repr(float(value))
    raise TypeError


def _spec(entry: Any) -> str:
    """A dimension of a PartitionSpec: None, a name, or several."""
    if entry is None:
        return "-"
    return entry if isinstance(entry, str) else "(" + "+".join(entry) + ")"


def _pairs(of: Mapping[str, Any], value) -> List[str]:
    return [f"{name}={value(entry)}" for name, entry in of.items()]


def _gemm(value: Any) -> str:
    if isinstance(value, Mapping):
        return ",".join(_pairs(value, scalar))
    names = ("m", "n", "k", "dtype")
    if not 3 <= len(value) <= 4:
        raise InputError(f"expected (m, n, k) or (m, n, k, dtype), found {len(value)} entries", argument="gemm")
    return ",".join(f"{name}={scalar(entry)}" for name, entry in zip(names, value))


def _extents(value: Any) -> str:
    return value if isinstance(value, str) else "x".join(_number(extent) for extent in value)


def _sharding(value: Any) -> str:
    return value if isinstance(value, str) else ",".join(_spec(entry) for entry in value)


def scalar(value: Any) -> str:
    """A text, a number or a path as a word."""
    if isinstance(value, str):
        return value
    if isinstance(value, (bytes, bool)):
        raise TypeError
    if isinstance(value, numbers.Number) or hasattr(value, "__index__"):
        return _number(value if isinstance(value, numbers.Number) else int(value))
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    raise TypeError


def _is_several(value: Any) -> bool:
    """Lists, tuples, ranges, arrays. A set has no order, and what only iterates may have no end."""
    return hasattr(value, "__len__") and hasattr(value, "__getitem__") and not isinstance(value, (str, bytes, bytearray, memoryview, os.PathLike, Mapping))


def _listed(value: Any) -> str:
    """A value, or several with commas between them."""
    return ",".join(scalar(entry) for entry in value) if _is_several(value) else scalar(value)


# How the values of some keywords are written, where they are neither texts nor numbers. Of a list of such values each is written so.
_WRITTEN = {
    "mesh": lambda value: ",".join(_pairs(value, scalar)),
    "gemm": _gemm,
    "slice": _extents,
    "array": _extents,
    "spec": _sharding,
    "shape": lambda value: ";".join(_pairs(value, _extents)),
    "shard": lambda value: ";".join(_pairs(value, _sharding)),
    "out": lambda value: ";".join(_pairs(value, _sharding)),
    "axis_names": lambda value: ",".join(_pairs(value, scalar)),
}


def _is_one_value(name: str, value: Any) -> bool:
    """Whether a sequence or mapping is one value of the keyword, not a list of values."""
    if name in ("mesh", "shape", "shard", "out", "axis_names"):
        return isinstance(value, Mapping)
    if name == "gemm":
        return isinstance(value, Mapping) or (not isinstance(value, str) and len(value) > 0 and isinstance(value[0], numbers.Integral))
    if name == "spec":
        return True
    return name in ("slice", "array") and isinstance(value, Sequence) and len(value) > 0 and isinstance(value[0], numbers.Integral)


def _texts(option: Option, value: Any) -> List[str]:
    name = option.name
    if name in _WRITTEN and not isinstance(value, str) and _is_one_value(name, value):
        text = _WRITTEN[name](value)
        return text.split(";") if option.kind == "many" and name in ("shape", "shard", "out") else [text]
    if isinstance(value, Mapping):
        pairs = _pairs(value, _listed)
        return pairs if option.kind == "many" else [",".join(pairs)]
    if _is_several(value):
        if option.kind == "many":  # each a list of its own, or one value
            return [text for entry in value for text in ([_listed(entry)] if _is_several(entry) and name not in _WRITTEN else _texts(option, entry))]
        return [",".join(text for entry in value for text in _texts(option, entry))]
    return [scalar(value)]


def words_of(option: Option, value: Any) -> List[str]:
    """The words that give an option a value; none for None and False. Raises TypeError and InputError."""
    dashed = "--" + option.word
    if value is None:
        return []
    if isinstance(value, bool):
        if option.on_off:
            return [f"{dashed}={'on' if value else 'off'}"]
        if option.kind == "flag":
            return [dashed] if value else []
        raise TypeError(f"{option.name} takes {option.value}, found {value}")
    if option.kind == "flag":
        raise TypeError(f"{option.name} takes True or False, found {value!r}")
    try:
        texts = _texts(option, value)
    except (TypeError, AttributeError, RecursionError):
        raise TypeError(f"{option.name} takes {option.value}, found {value!r} ({type(value).__name__})") from None
    return [f"{dashed}={text}" for text in texts]


def check_keywords(function: str, known: Iterable[str], given: Iterable[str]) -> None:
    """Raises TypeError for a keyword that there is not."""
    known = list(known)
    for name in given:
        if name in known:
            continue
        near = difflib.get_close_matches(name, known, 3)
        hint = ", did you mean " + " or ".join(repr(word) for word in near) + "?" if near else ""
        raise TypeError(f"{function}() got an unexpected keyword argument {name!r}{hint}")

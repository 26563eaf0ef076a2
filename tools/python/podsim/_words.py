"""Values of Python as the words of a command: what a keyword takes, by the command's own list of options."""

from __future__ import annotations

import difflib
import functools
import numbers
import os
import reprlib
from collections.abc import Mapping
from typing import Any, Collection, Dict, Iterable, List, NamedTuple, Optional, Tuple

import numpy as np

from . import _core
from ._errors import InputError, keyword_of


class Option(NamedTuple):
    """An option of a command, as ``podsim VERB --help`` has it."""

    name: str  # as a keyword: slice_count; pass_ and from_, as Python has these words itself
    kind: str  # flag, one, many
    form: str  # how a text is written: count, word, extents, file, ... (Form of workloads/scenario/fields.hpp)
    value: str  # in the help
    default: Optional[str]
    choices: List[str]  # the only ones
    help: str

    @property
    def word(self) -> str:
        """As the command has it: slice-count."""
        return self.name.rstrip("_").replace("_", "-")

    @property
    def on_off(self) -> bool:
        return self.choices == ["on", "off"]

    @property
    def names_files(self) -> bool:
        return self.form in ("file", "name_or_file", "named_files")

    @property
    def takes_pairs(self) -> bool:
        return self.form in _OF_PAIRS


_OF_PAIRS = {"pairs", "mesh", "gemm", "shapes", "shardings", "named_files", "named_texts"}

# What belongs to a terminal.
_NOT_IN_PYTHON = {"help", "quiet", "format"}


@functools.lru_cache(maxsize=None)
def options(*words: str) -> Dict[str, Option]:
    """The options of a command by their keywords, in the order of its help."""
    found = (Option(keyword_of(name), *rest) for name, *rest in _core.options(list(words)))
    return {option.name: option for option in found if option.name not in _NOT_IN_PYTHON}


def _number(value: Any) -> str:
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
    if not all(isinstance(name, str) and "=" not in name for name in of):
        raise TypeError
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
        return scalar(os.fspath(value))
    raise TypeError


_NO_TEXTS = (bytes, bytearray, memoryview)


def _is_several(value: Any) -> bool:
    """Lists, tuples, ranges, arrays. A set has no order, and what only iterates may have no end."""
    return hasattr(value, "__len__") and hasattr(value, "__getitem__") and not isinstance(value, (str, os.PathLike, Mapping, *_NO_TEXTS))


def _listed(value: Any) -> str:
    """A value, or several with commas between them."""
    return ",".join(scalar(entry) for entry in value) if _is_several(value) else scalar(value)


# How a value of these forms is written, where it is neither a text nor a number: in one text, or several. Of a list of such values each is written so.
_WRITTEN = {
    "mesh": lambda value: [",".join(_pairs(value, scalar))],
    "gemm": lambda value: [_gemm(value)],
    "extents": lambda value: [_extents(value)],
    "sharding": lambda value: [_sharding(value)],
    "shapes": lambda value: _pairs(value, _extents),
    "shardings": lambda value: _pairs(value, _sharding),
}


def _is_one_value(form: str, value: Any) -> bool:
    """Whether a sequence or mapping is one value of this form, not a list of values, and not its text."""
    if isinstance(value, (str, numbers.Number)):
        return False
    if form in ("mesh", "shapes", "shardings"):
        return isinstance(value, Mapping)
    if form == "gemm" and isinstance(value, Mapping):
        return True
    return form == "sharding" or (form in ("gemm", "extents") and _is_several(value) and len(value) > 0 and isinstance(value[0], numbers.Number))


def _texts(option: Option, value: Any) -> List[str]:
    if isinstance(value, str):
        return [value]
    if isinstance(value, _NO_TEXTS) or (option.names_files and isinstance(value, numbers.Number)) or (isinstance(value, Mapping) and not option.takes_pairs):
        raise TypeError
    if _is_one_value(option.form, value):
        return _WRITTEN[option.form](value)
    if isinstance(value, Mapping):
        pairs = _pairs(value, _listed)
        return pairs if option.kind == "many" else [",".join(pairs)]
    if _is_several(value):
        each = []
        for entry in value:
            each += _WRITTEN[option.form](entry) if _is_one_value(option.form, entry) else [_listed(entry) if option.kind == "many" else scalar(entry)]
        return each if option.kind == "many" else [",".join(each)]
    return [scalar(value)]


def shown(value: Any) -> str:
    """A value in a message: an array of a million numbers is not."""
    return f"{reprlib.repr(value)} ({type(value).__name__})"


def checked_text(text: str, argument: str) -> str:
    """A text that the simulator can take. Raises InputError for characters that are none, as the half of a surrogate pair."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise InputError(f"is no text: {error.reason} at position {error.start} of {shown(text)}", argument=argument) from None
    return text


def text_only(value: Any, argument: str = "text") -> str:
    """A text. Raises TypeError and InputError."""
    if not isinstance(value, str):
        raise TypeError(f"{argument} takes a text, found {shown(value)}")
    return checked_text(value, argument)


def name_or_path(value: Any, argument: str) -> str:
    """A name, or a file. Raises TypeError and InputError."""
    if not isinstance(value, (str, os.PathLike)) or isinstance(os.fspath(value), bytes):
        raise TypeError(f"{argument} takes a name or a file, found {shown(value)}")
    return checked_text(os.fspath(value), argument)


def overrides(values: Optional[Mapping[str, Any]]) -> Tuple[Tuple[str, str], ...]:
    """A machine's other values. Raises TypeError and InputError."""
    if not isinstance(values, (Mapping, type(None))):
        raise TypeError(f'expected other values as a dict, {{"link.bandwidth": "45GB/s"}}, found {shown(values)}')
    try:
        return tuple((checked_text(path, "set"), checked_text(scalar(value), "set")) for path, value in (values or {}).items())
    except (TypeError, AttributeError):
        raise TypeError(f"a machine's value is a text or a number, by its path, found {shown(values)}") from None


def words_of(option: Option, value: Any) -> List[str]:
    """The words that give an option a value; none for None and False. Raises TypeError and InputError."""
    dashed = "--" + option.word
    if value is None:
        return []
    if isinstance(value, (bool, np.bool_)):
        if option.on_off:
            return [f"{dashed}={'on' if value else 'off'}"]
        if option.kind == "flag":
            return [dashed] if value else []
        raise TypeError(f"{option.name} takes {option.value}, found {value}")
    if option.kind == "flag":
        raise TypeError(f"{option.name} takes True or False, found {shown(value)}")
    try:
        texts = _texts(option, value)
    except (TypeError, AttributeError, RecursionError):
        raise TypeError(f"{option.name} takes {option.value}, found {shown(value)}") from None
    if not all(texts) or (not texts and (option.kind == "one" or option.form in ("mesh", "gemm"))):
        raise InputError(f"expected {option.value}, found nothing in {shown(value)}", argument=option.name)
    return [f"{dashed}={checked_text(text, option.name)}" for text in texts]


def check_progress(progress: Any) -> None:
    """Raises TypeError where nothing can be told to it."""
    if not (progress is None or callable(progress)):
        raise TypeError(f"progress takes a function of one text, found {shown(progress)}")


def function_of(command: Tuple[str, ...]) -> str:
    """The function of the module that is a command."""
    return "schedule" if command == ("show", "schedule") else "_".join(command)


def check_keywords(function: str, known: Collection[str], given: Iterable[str]) -> None:
    """Raises TypeError for a keyword that there is not."""
    for name in given:
        if name in known:
            continue
        near = difflib.get_close_matches(name, known, 3)
        hint = ", did you mean " + " or ".join(repr(word) for word in near) + "?" if near else ""
        raise TypeError(f"{function}() got an unexpected keyword argument {name!r}{hint}")

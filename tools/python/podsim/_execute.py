"""Schedules computed on numpy arrays."""

from __future__ import annotations

import difflib
import threading
from typing import Dict, Mapping

import numpy as np

from . import _api, _core
from ._errors import InputError
from ._objects import Schedule

# Of a buffer's dtype: what arrays of other types must convert to, how the engine holds it, what comes back.
_REAL = (np.float64, np.float32, np.float64)
_DTYPES = {"f32": _REAL, "bf16": _REAL, "f8e4m3fn": _REAL, "f8e5m2": _REAL, "c64": (np.complex128, np.complex64, np.complex128),
           "s8": (np.int8, np.float32, np.int8), "s32": (np.int32, np.int32, np.int32)}


def _words(name: str, value: object, dtype: str, shape: tuple) -> np.ndarray:
    """An input as the engine's words of 4 bytes."""
    widest, held, _ = _DTYPES[dtype]
    is_whole = np.issubdtype(widest, np.integer)
    array = np.asarray(value)
    if array.dtype.kind not in "biufc" or not (np.can_cast(array.dtype, widest, "same_kind") or is_whole and array.dtype.kind in "iu"):
        raise InputError(f"expected an array of numbers that convert to {np.dtype(widest).name}, found {array.dtype}", argument=name)
    if array.shape != shape:
        raise InputError(f"expected an array of shape {shape}, found {array.shape}", argument=name)
    if is_whole and array.size and not (np.iinfo(widest).min <= array.min() and array.max() <= np.iinfo(widest).max):
        raise InputError(f"expected whole numbers of {np.iinfo(widest).bits} bits, found larger ones", argument=name)
    with np.errstate(over="ignore"):  # beyond float32 is infinite, as on a device
        return np.ascontiguousarray(array, dtype=held).reshape(-1).view(np.float32)


def execute(schedule: Schedule, inputs: Mapping[str, np.ndarray]) -> Dict[str, np.ndarray]:
    """Computes with a schedule: ``podsim.execute(s, {"X": x, "W": w})["Y"]``.

    ``inputs`` has every input as a whole array, by the name of its tensor, with the shape that the schedule's claim or its buffers give it; the schedule
    cuts it into shards. Numbers of any real type are accepted (complex ones for c64 buffers, whole ones for s32 and s8), and rounded to float32, which the
    engine computes in; values of bf16, f8e4m3fn and f8e5m2 buffers are rounded to these wherever they are stored, as XLA converts them, and s8 wraps. Returned
    are all outputs as whole float64 arrays (complex128, int32, int8), with exactly those float32 values. Elements that no task writes are NaN.

    Tasks run in program order, collectives by the algorithms that ``run`` would choose on an ideal machine. ``check()`` says whether the schedule is free
    of races; of one that is not, these are the results of one order. Raises InputError for a missing or unknown name, a wrong shape or dtype; DataError for
    a singular matrix.
    """
    if not isinstance(schedule, Schedule):
        raise TypeError(f"expected a podsim.Schedule, found {schedule!r}")
    if not isinstance(inputs, Mapping):
        raise TypeError(f"expected arrays by the names of inputs, found {inputs!r}")
    expected = {name: (dtype, shape) for name, dtype, shape in _core.tensors(schedule._core, "input")}
    for name in inputs:
        if name not in expected:
            near = difflib.get_close_matches(str(name), expected, 3)
            hint = ", did you mean " + " or ".join(f'"{word}"' for word in near) + "?" if near else ""
            raise InputError(f'the schedule has no input "{name}"{hint}; there are {", ".join(expected) or "none"}', argument="inputs")
    for name in expected:
        if name not in inputs:
            raise InputError(f'the input "{name}" of shape {expected[name][1]} is missing', argument="inputs")
    words = {name: _words(name, inputs[name], dtype, shape) for name, (dtype, shape) in expected.items()}
    lowered = _api.schedule(schedule, lowered=True)
    found = _core.execute(lowered._core, words, threading.current_thread() is threading.main_thread())
    return {name: found[name].view(_DTYPES[dtype][1]).reshape(shape).astype(_DTYPES[dtype][2])
            for name, dtype, shape in _core.tensors(schedule._core, "output")}

"""What a compiler refuses, in the words of whoever asked it."""

from __future__ import annotations

import importlib.util
import re
from typing import Any, List, NamedTuple, Optional, Tuple


WITHOUT = "or pass compiled.as_text() of a computer that has it to podsim.run(hlo=..., mesh=...)"


class CompileError(RuntimeError):
    """XLA does not compile the program. ``said`` is what it says."""

    def __init__(self, message: str, said: str = ""):
        super().__init__(message)
        self.said = said or message

    def __reduce__(self) -> Any:
        return (type(self), (str(self), self.said))


class Buffer(NamedTuple):
    """One of the largest arrays of a program that does not fit."""

    size: str  # as XLA writes it: 2.00G
    shape: str
    source: str  # a line of the program, or what JAX calls the operation

    def __str__(self) -> str:
        return f"{self.size} {self.shape} {self.source}".rstrip()


class OutOfMemory(CompileError):
    """The program does not fit the memory of a device: ``needed`` and ``limit`` as XLA writes them, ``buffers`` the largest if it names them."""

    def __init__(self, message: str, said: str = ""):
        super().__init__(message, said)
        self.needed, self.limit = _needed(self.said)
        self.buffers = _buffers(self.said)


_USED = re.compile(r"Used ([\d.]+[KMGT]?) of ([\d.]+[KMGT]?)|\(([\d.]+[KMGT]?)\) exceeds available HBM \(([\d.]+[KMGT]?)\)")
_ALLOCATION = re.compile(r"^\s*\d+\. Size: (\S+)\n(.*?)(?=^\s*=+)", re.MULTILINE | re.DOTALL)


def _needed(said: str) -> Tuple[Optional[str], Optional[str]]:
    found = _USED.search(said)
    if not found:
        return None, None
    needed, limit = (found[1] or found[3]), (found[2] or found[4])
    return needed, limit


def _buffers(said: str) -> List[Buffer]:
    """The five largest."""
    buffers = []
    for size, body in _ALLOCATION.findall(said)[:5]:
        shape, operation = re.search(r"Shape: (\S+)", body), re.search(r'op_name="([^"]*)"', body)
        file, line = re.search(r'source_file="([^"]*)"', body), re.search(r"source_line=(\d+)", body)
        source = f"{file[1]}:{line[1]}" if file and line else operation[1] if operation else ""
        buffers.append(Buffer(size, shape[1] if shape else "", source))
    return buffers


def import_jax() -> Any:
    """JAX, or an ImportError that says what to do."""
    from ._devices import set_environment

    set_environment()
    try:
        import jax
    except ImportError as error:
        raise ImportError(f"podsim.jax compiles with JAX, which this Python does not have ({error}): pip install \"jax[tpu]\", {WITHOUT}", name="jax") from error
    return jax


def check_compiler(machine: str, gpu: bool) -> None:
    """Raises ImportError where the compiler of the machine is not installed."""
    if gpu:
        if not any(importlib.util.find_spec(f"jax_cuda{version}_plugin") for version in (12, 13, 14)):
            raise ImportError(f"{machine} needs XLA's compiler of NVIDIA GPUs, though no GPU: pip install jax-cuda13-plugin jax-cuda13-pjrt, {WITHOUT}", name="jax_cuda13_plugin")
    elif importlib.util.find_spec("libtpu") is None:
        raise ImportError(f"{machine} needs XLA's compiler of TPUs, though no TPU: pip install libtpu, {WITHOUT}", name="libtpu")


def first_line(said: str) -> str:
    return next((line.strip() for line in said.splitlines() if line.strip()), said)


def compile_error(error: BaseException) -> CompileError:
    """What JAX raised while it compiled."""
    said = str(error)
    if "RESOURCE_EXHAUSTED" in said or "Ran out of memory" in said:
        needed, limit = _needed(said)
        how_much = f": it needs {needed} of {limit}" if needed else f": {first_line(said)}"
        largest = "".join(f"\n  {buffer}" for buffer in _buffers(said))
        return OutOfMemory(f"the program does not fit the memory of a device{how_much}{largest and chr(10) + 'largest buffers:' + largest}", said)
    return CompileError(f"XLA does not compile the program: {first_line(said)}", said)

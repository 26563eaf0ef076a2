"""Lines of a program that the instructions of a module come from: its metadata."""

from __future__ import annotations

import re
from typing import Dict, NamedTuple, Optional, Tuple


class Source(NamedTuple):
    """``layer.py:24``, and what JAX calls the operation there."""

    file: str
    line: int
    operation: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}" if self.file else self.operation


_SECTION = re.compile(r"^(FileNames|FunctionNames|FileLocations|StackFrames)\n(.*?)\n\n", re.MULTILINE | re.DOTALL)
_INSTRUCTION = re.compile(r"^ *(?:ROOT )?%?([\w.\-]+) = .*?metadata=\{([^}]*)\}", re.MULTILINE)
_OWN = ("/jax/_src/", "/site-packages/", "/dist-packages/")  # lines of libraries, not of the user


def _numbers(text: str) -> Dict[str, int]:
    return {name: int(value) for name, value in re.findall(r"(\w+)=(\d+)", text)}


class _Frames:
    """The tables of files, places and stack frames before the computations."""

    def __init__(self, text: str):
        sections = {name: body.split("\n") for name, body in _SECTION.findall(text[: text.find("\n%") + 1 or None])}
        rows = {name: dict(line.split(" ", 1) for line in lines if " " in line) for name, lines in sections.items()}
        self._files = {int(number): name.strip('"') for number, name in rows.get("FileNames", {}).items()}
        self._places = {int(number): _numbers(place) for number, place in rows.get("FileLocations", {}).items()}
        self._frames = {int(number): _numbers(frame) for number, frame in rows.get("StackFrames", {}).items()}

    def place(self, frame: int) -> Optional[Tuple[str, int]]:
        """The innermost line that is no library's."""
        inner, seen = None, set()
        while frame in self._frames and frame not in seen:
            seen.add(frame)
            place = self._places.get(self._frames[frame].get("file_location_id", 0), {})
            found = self._files.get(place.get("file_name_id", 0), ""), place.get("line", 0)
            inner = inner or found
            if not any(part in found[0] for part in _OWN):
                return found
            frame = self._frames[frame].get("parent_frame_id", 0)
        return inner


def sources_of(text: str) -> Dict[str, Source]:
    """By the name of the instruction, of those that have a place or an op_name."""
    frames = _Frames(text)
    sources = {}
    for name, metadata in _INSTRUCTION.findall(text):
        operation = re.search(r'op_name="([^"]*)"', metadata)
        frame = re.search(r"stack_frame_id=(\d+)", metadata)
        place = frames.place(int(frame[1])) if frame else None
        file, line = re.search(r'source_file="([^"]*)"', metadata), re.search(r"source_line=(\d+)", metadata)
        if place is None and file:
            place = file[1], int(line[1]) if line else 0
        if place or operation:
            sources[name] = Source(*(place or ("", 0)), operation[1] if operation else "")
    return sources

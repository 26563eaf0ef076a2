"""What goes wrong, as exceptions."""

from __future__ import annotations

import keyword
import re
from typing import Any, Optional, Sequence


class InputError(ValueError):
    """An input is wrong.

    ``file``, ``line`` and ``column`` say where, from 1; None where the input is no text. ``argument`` is the keyword to blame, whose text the line and column are then
    of. ``nearest`` has the names that are near to one that is unknown, best first. ``errors`` has all of several errors.
    """

    def __init__(self, message: str, *, file: Optional[str] = None, line: Optional[int] = None, column: Optional[int] = None,
                 argument: Optional[str] = None, errors: Sequence["InputError"] = ()):
        place = ":".join(str(part) for part in (file or argument, line, column) if part)
        super().__init__(f"{place}: {message}" if place else message)
        self.message = message
        self.file, self.line, self.column, self.argument = file, line, column, argument
        self.errors = tuple(errors) or (self,)
        hint = re.search(r"did you mean (.*?)\?", message)
        self.nearest = tuple(re.findall(r'"([^"]*)"', hint.group(1))) if hint else ()

    def __reduce__(self) -> Any:
        again = (self.message, self.file, self.line, self.column, self.argument, self.errors if self.errors != (self,) else ())
        return (_input_error, again)


def _input_error(message: str, file: Any, line: Any, column: Any, argument: Any, errors: Any) -> InputError:
    return InputError(message, file=file, line=line, column=column, argument=argument, errors=errors)


class DataError(ArithmeticError):
    """A schedule cannot work on its data, such as a singular matrix."""


class HostError(OSError):
    """The computer failed: there is no memory, the disk is full, a process died. The same call may succeed at another time."""


class InternalError(RuntimeError):
    """A mistake of podsim's. Please report it with what was called."""


class Interrupted(KeyboardInterrupt):
    """Ctrl-C ended the work. ``result`` is what is known by then, or None."""

    def __init__(self, message: str = "interrupted", result: Any = None):
        super().__init__(message)
        self.result = result


_OPTION = re.compile(r"(?<![\w-])--([a-z][a-z-]*)")
_FIELD = re.compile(r"`([a-z_]+)`")


def keyword_of(option: str) -> str:
    """slice_count for slice-count; pass_ and from_, as Python has these words itself."""
    name = option.replace("-", "_")
    return name + "_" if keyword.iskeyword(name) else name


def in_python(message: str) -> str:
    """Keywords instead of a command line's options: slice_count for --slice-count."""
    message = message.replace("; --help lists the options", "")
    return _FIELD.sub(lambda field: keyword_of(field.group(1)), _OPTION.sub(lambda option: keyword_of(option.group(1)), message))


def from_diagnostics(diagnostics: Sequence[tuple]) -> BaseException:
    """The exception that these errors of the simulator are; each is (file, line, column, whether file is a field, message, cause)."""
    errors = []
    for file, line, column, is_field, message, cause in diagnostics:
        if cause == "cancelled":
            return Interrupted()
        message = in_python(message)
        if cause == "environment":
            return HostError(f"{file}: {message}" if file else message)
        if cause == "data":
            return DataError(message)
        argument = None
        if is_field or file.startswith("--"):
            argument, file = keyword_of(file.removeprefix("--")), ""
        errors.append(InputError(message, file=file or None, line=line or None, column=column or None, argument=argument))
    if len(errors) == 1:
        return errors[0]
    first = errors[0]
    return InputError("\n".join([first.message] + [str(error) for error in errors[1:]]), file=first.file, line=first.line, column=first.column,
                      argument=first.argument, errors=errors)

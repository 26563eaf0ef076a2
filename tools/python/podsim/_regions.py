"""Where a task reads and writes: coordinates of a device, conditions on them, buffers and regions of buffers."""

from __future__ import annotations

import operator
from typing import Any, List, Optional, Sequence, Tuple, Union

from . import _core
from ._errors import InputError

_Term = Tuple[Any, int, int]  # axis, coefficient, add: coefficient * ((coordinate + add) mod size)


def whole_number(value: Any, argument: str) -> int:
    """An int, or what converts to one without loss."""
    try:
        return operator.index(value)
    except TypeError:
        raise InputError(f"expected a whole number, found {value!r} ({type(value).__name__})", argument=argument) from None


class Index:
    """A number that depends on the device: its coordinates on mesh axes, times and plus whole numbers, modulo one.

    ``i = b.index("ring")`` is a device's own coordinate. ``i + 1``, ``4 * i``, ``(i + 1) % 8`` and sums of such indices are indices; ``(i + 1) % 8`` on an axis of 8 is
    the neighbour's coordinate. ``i == 0``, ``i < 3`` and ``i.between(1, 4)`` are conditions, for ``where``.
    """

    __slots__ = ("_terms", "_constant", "_modulus", "_stride", "_offset")

    def __init__(self, terms: Sequence[_Term] = (), constant: int = 0, modulus: int = 0, stride: int = 1, offset: int = 0):
        # stride * ((sum of terms + constant) mod modulus) + offset
        self._terms, self._constant, self._modulus = tuple(terms), constant, modulus
        self._stride, self._offset = stride, offset

    @classmethod
    def _of(cls, value: Union["Index", int], argument: str = "index") -> "Index":
        return value if isinstance(value, Index) else cls(constant=whole_number(value, argument))

    def _folded(self) -> "Index":
        """With stride 1 and offset 0."""
        if self._stride == 1 and self._offset == 0:
            return self
        if self._modulus:
            raise InputError("a remainder cannot be multiplied or added to here; take the remainder last", argument="index")
        terms = [(axis, coefficient * self._stride, add) for axis, coefficient, add in self._terms]
        return Index(terms, self._constant * self._stride + self._offset)

    def _affine(self) -> Any:
        folded = self._folded()
        return _core.Affine(list(folded._terms), folded._constant, folded._modulus)

    def __add__(self, other: Union["Index", int]) -> "Index":
        if not isinstance(other, Index):
            number = whole_number(other, "index")
            if self._stride == 1 and self._offset == 0 and not self._modulus and not any(add for _, _, add in self._terms):
                return Index(self._terms, self._constant + number)
            return Index(self._terms, self._constant, self._modulus, self._stride, self._offset + number)
        if not other._terms:
            return self + other._folded()._constant
        if not self._terms:
            return other + self
        a, b = self._folded(), other._folded()
        if a._modulus or b._modulus:
            raise InputError("a remainder and another index cannot be added; take the remainder last", argument="index")
        return Index(a._terms + b._terms, a._constant + b._constant)

    def __mul__(self, factor: int) -> "Index":
        factor = whole_number(factor, "index")
        return Index(self._terms, self._constant, self._modulus, self._stride * factor, self._offset * factor)

    def __mod__(self, modulus: int) -> "Index":
        modulus = whole_number(modulus, "index")
        if modulus < 1:
            raise InputError(f"expected a positive modulus, found {modulus}", argument="index")
        folded = self._folded()
        if folded._modulus:
            raise InputError("the remainder of a remainder cannot be taken", argument="index")
        if not folded._terms:
            return Index(constant=folded._constant % modulus)
        if len(folded._terms) == 1:
            axis, coefficient, add = folded._terms[0]
            if coefficient == 1 and add == 0 and axis.size == modulus:  # a neighbour on a ring
                return Index([(axis, 1, folded._constant)])
        return Index(folded._terms, folded._constant, modulus)

    __radd__ = __add__
    __rmul__ = __mul__

    def __neg__(self) -> "Index":
        return self * -1

    def __sub__(self, other: Union["Index", int]) -> "Index":
        return self + (-other)

    def __rsub__(self, other: int) -> "Index":
        return -self + other

    def _distance_to(self, other: "Index") -> Optional[int]:
        """other - self, if that is plainly the same on all devices."""
        if (self._terms, self._modulus, self._stride) != (other._terms, other._modulus, other._stride):
            return None
        if self._modulus and self._constant != other._constant:
            return None
        return self._stride * (other._constant - self._constant) + other._offset - self._offset

    def _bounds(self) -> Tuple[int, int]:
        """The least and the largest value on any device, or further apart."""
        folded = self._folded()
        if folded._modulus:
            return 0, folded._modulus - 1
        ends = [sorted((0, coefficient * (axis.size - 1))) for axis, coefficient, _ in folded._terms]
        return folded._constant + sum(low for low, _ in ends), folded._constant + sum(high for _, high in ends)

    def between(self, low: int, high: int) -> "Where":
        """low <= value < high."""
        return Where([(self, whole_number(low, "low"), whole_number(high, "high"))])

    def __lt__(self, high: int) -> "Where":
        return self.between(self._bounds()[0], high)

    def __le__(self, highest: int) -> "Where":
        return self < whole_number(highest, "where") + 1

    def __ge__(self, low: int) -> "Where":
        return self.between(low, self._bounds()[1] + 1)

    def __gt__(self, below: int) -> "Where":
        return self >= whole_number(below, "where") + 1

    def __eq__(self, value: object) -> "Where":  # type: ignore[override]
        number = whole_number(value, "where")
        return self.between(number, number + 1)

    __hash__ = None  # type: ignore[assignment]

    def __bool__(self) -> bool:
        raise InputError("an index has a value on a device only; give a condition on it to `where`", argument="where")


class Where:
    """The devices on which all of several conditions hold: ``(row == 0) & (col < 3)``."""

    __slots__ = ("_conditions",)

    def __init__(self, conditions: Sequence[Tuple[Index, int, int]] = ()):
        self._conditions = list(conditions)

    def __and__(self, other: "Where") -> "Where":
        if not isinstance(other, Where):
            raise InputError(f"expected a condition on an index, found {other!r}", argument="where")
        return Where(self._conditions + other._conditions)

    def __bool__(self) -> bool:
        raise InputError("conditions are joined by &, not by `and`: they hold on a device only", argument="where")

    def _guard(self) -> List[Any]:
        return [_core.Condition(index._affine(), low, high) for index, low, high in self._conditions]


class Region:
    """A box of a buffer: ``X[0:4, :]``. Each dimension keeps its place, also one of length 1."""

    __slots__ = ("buffer", "_ranges")

    def __init__(self, buffer: "Buffer", ranges: Sequence[Tuple[Index, int]]):
        self.buffer = buffer
        self._ranges = tuple(ranges)  # start, length

    @property
    def shape(self) -> Tuple[int, ...]:
        return tuple(length for _, length in self._ranges)

    def _core_region(self) -> Any:
        ranges = []
        for start, length in self._ranges:
            if start._terms:
                index = _core.Affine(list(start._terms), start._constant, start._modulus)
                ranges.append(_core.Range(index, start._stride, start._offset, length))
            else:  # a constant place
                ranges.append(_core.Range(_core.Affine([], 0, 0), 1, start._folded()._constant, length))
        return _core.Region(self.buffer._id, ranges)

    def __repr__(self) -> str:
        return f"<region of {self.buffer.name!r}, shape {self.shape}>"


class Buffer:
    """Storage on every device of a program, of ``shape`` elements each. ``X[...]`` is a region of it, as in numpy; the buffer itself stands for all of it.

    A subscript is ``:``, a number, an ``Index`` (the place depends on the device), or a slice between two of these that are equally far apart on all devices:
    ``Y[16 * i:16 * (i + 1)]``. Dimensions at the end may be left out.
    """

    __slots__ = ("name", "shape", "tensor", "global_shape", "_id", "_program", "_builder")

    def __init__(self, name: str, shape: Sequence[int], tensor: str, global_shape: Sequence[int], id: int, program: int, builder: Any):
        self.name, self.shape, self.tensor, self.global_shape = name, tuple(shape), tensor, tuple(global_shape)
        self._id, self._program, self._builder = id, program, builder

    def __getitem__(self, key: Any) -> Region:
        keys = key if isinstance(key, tuple) else (key,)
        if len(keys) > len(self.shape):
            raise InputError(f"buffer {self.name!r} has {len(self.shape)} dimensions, found {len(keys)} subscripts", argument=self.name)
        keys += (slice(None),) * (len(self.shape) - len(keys))
        return Region(self, [self._range(one, extent, dim) for dim, (one, extent) in enumerate(zip(keys, self.shape))])

    def _range(self, key: Any, extent: int, dim: int) -> Tuple[Index, int]:
        where = f"dimension {dim} of buffer {self.name!r}"
        if isinstance(key, slice):
            if key.step is not None:
                raise InputError(f"a region has no step, found {key.step!r} in {where}", argument=self.name)
            start, stop = Index._of(0 if key.start is None else key.start, self.name), Index._of(extent if key.stop is None else key.stop, self.name)
        else:
            start = Index._of(key, self.name)
            stop = start + 1
        length = 1 if not isinstance(key, slice) else self._length(start, stop, where)
        if not start._terms:
            begin = start._folded()._constant
            if begin < 0 or length < 1 or begin + length > extent:
                raise InputError(f"{begin}:{begin + length} is outside {where}, which has {extent} elements", argument=self.name)
        elif length < 1 or length > extent:
            raise InputError(f"{length} elements do not fit {where}, which has {extent}", argument=self.name)
        return start, length

    def _length(self, start: Index, stop: Index, where: str) -> int:
        length = start._distance_to(stop)
        if length is None:
            raise InputError(f"the length of a slice must be the same on all devices, found others in {where}", argument=self.name)
        return length

    def __repr__(self) -> str:
        return f"<buffer {self.name!r}, {self.shape} on each device>"


def block(index: Union[Index, int], length: int) -> slice:
    """The elements of block number ``index`` of blocks of ``length``, as a subscript: ``X[block(i, 16)]`` is ``X[16 * i:16 * i + 16]``."""
    length = whole_number(length, "length")
    start = Index._of(index) * length
    return slice(start, Index(start._terms, start._constant, start._modulus, start._stride, start._offset + length))

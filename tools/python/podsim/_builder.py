"""Schedules in a few lines of Python."""

from __future__ import annotations

import html
import numbers
from typing import Any, Dict, List, Mapping, NamedTuple, Optional, Sequence, Tuple, Union

from . import _core
from ._errors import InputError
from ._objects import Schedule
from ._regions import Buffer, Index, Region, Where, whole_number

Place = Union[Buffer, Region]
Axes = Union[str, Sequence[str]]


_INT = 2**31 - 1


def _text(value: Any, argument: str) -> str:
    if not isinstance(value, str):
        raise InputError(f"expected a text, found {value!r}", argument=argument)
    return value


def _list(value: Any, argument: str, length: Optional[int] = None) -> List[Any]:
    if not isinstance(value, (list, tuple)) or length is not None and len(value) != length:
        raise InputError(f"expected a list{'' if length is None else f' of {length}'}, found {value!r}", argument=argument)
    return list(value)


class Task:
    """A task of a builder, for ``after``. ``task.sent`` and ``task.received`` are the halves of a shift."""

    __slots__ = ("label", "number", "_program", "_builder", "_has_halves", "_done", "_gates")

    def __init__(self, label: str, number: int, program: int, builder: "Builder", has_halves: bool, done: str = "both", gates: str = "both"):
        self.label, self.number, self._program, self._builder, self._has_halves = label, number, program, builder, has_halves
        self._done, self._gates = done, gates

    def _with(self, **halves: str) -> "Task":
        if "done" in halves and not self._has_halves:
            raise InputError(f"only a shift has halves, found {self!r}", argument=halves["done"])
        return Task(self.label, self.number, self._program, self._builder, self._has_halves, halves.get("done", self._done), halves.get("gates", self._gates))

    @property
    def sent(self) -> "Task":
        """Its sending half."""
        return self._with(done="sent")

    @property
    def received(self) -> "Task":
        """Its receiving half."""
        return self._with(done="received")

    def gates(self, half: str) -> "Task":
        """Only the half ``"send"`` or ``"receive"`` of the waiting shift waits for it."""
        if half not in ("send", "receive"):
            raise InputError(f'expected "send" or "receive", found {half!r}', argument="half")
        return self._with(gates=half)

    def __repr__(self) -> str:
        return f"<task {self.number} {self.label!r}>"


class DerivedEdge(NamedTuple):
    """``task`` waits for ``after``, since on ``device`` (and on others like it) both touch the same elements and one of them writes."""

    program: int
    task: int
    label: str
    after: int
    after_label: str
    done: str  # both, sent, received: what of `after` must be over
    gates: str  # both, send, receive: what of `task` waits
    because: str  # read after write, write after read, write after write
    earlier: str  # the region that `after` touches
    later: str  # the region that `task` touches
    device: str

    def __str__(self) -> str:
        done = "" if self.done == "both" else f" {self.done}"
        gates = "" if self.gates == "both" else f" to {self.gates}"
        tasks = f'{self.task} "{self.label}"{gates} after {self.after} "{self.after_label}"{done}'
        return f"{tasks}: {self.because}, {self.later} and {self.earlier} on {self.device}"


class DerivedEdges(List[DerivedEdge]):
    """A list that prints as a line per edge."""

    def __str__(self) -> str:
        return "\n".join(str(edge) for edge in self)

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(str(self))}</pre>"


class Builder:
    """Writes a schedule: buffers, then tasks in the order in which they would run one after the other.

    A program in SPMD style: every device runs every task, at places that depend on its coordinates. A task waits for exactly those before it whose elements
    it touches, where one of the two writes; ``edges()`` lists what follows from that. ``build()`` is the ``Schedule``: ``check()`` proves it, ``run()``
    times it, ``execute()`` computes with it. ::

        b = podsim.Builder({"ring": 4}, name="all-gather")
        i = b.index("ring")
        shard = b.input("X", (64,), ["ring"])
        all = b.output("X", (64,), name="all")
        b.place(shard, all[podsim.block(i, 16)])
        for t in range(3):
            b.shift("ring", 1, all[podsim.block((i - t) % 4, 16)], all[podsim.block((i - t - 1) % 4, 16)])
        b.claim_collective("all-gather", "ring", shard, all)
        podsim.check(b.build())

    ``mesh``: axis names and sizes, first most significant, as ``jax.sharding.Mesh``; or a ``Schedule``, for the same mesh. ``wraps``: whether the last
    device of an axis is next to its first, for all axes or by name. ``dtype``: of buffers that say nothing else: f32, bf16, f8e4m3fn, f8e5m2,
    s8, c64, s32.
    """

    def __init__(self, mesh: Union[Mapping[str, int], Schedule], *, name: str = "", wraps: Union[bool, Mapping[str, bool]] = True, dtype: str = "f32"):
        if isinstance(mesh, Schedule):
            self._mesh = _core.Mesh.of(mesh._core)
        elif isinstance(mesh, Mapping):
            each = wraps if isinstance(wraps, Mapping) else {axis: wraps for axis in mesh}
            self._mesh = _core.Mesh([(_text(axis, "mesh"), whole_number(size, "mesh", _INT), bool(each.get(axis, True))) for axis, size in mesh.items()])
            for axis in each:
                self._axis(axis, "wraps")
        else:
            raise InputError(f"expected axis names and sizes, or a schedule, found {mesh!r}", argument="mesh")
        self._dtype = _text(dtype, "dtype")
        self._writer = _core.ScheduleWriter(_text(name, "name"), self._mesh)
        self._program = 0
        self._buffers: Dict[str, Buffer] = {}
        self._empty = True

    # ---- Devices ------------------------------------------------------------------------------------------------------------------------

    @property
    def devices(self) -> int:
        return self._mesh.devices

    def size(self, axis: str) -> int:
        """Devices along an axis."""
        return self._axis(axis).size

    def index(self, axis: str) -> Index:
        """A device's own coordinate on an axis, from 0."""
        return Index([(self._axis(axis), 1, 0)])

    def program(self, first: int, last: int) -> None:
        """What follows is for devices ``first`` to ``last - 1`` alone, numbered row-major over the mesh. Buffers belong to one program; ``send`` and
        ``recv`` link programs."""
        first, last = whole_number(first, "first", _INT), whole_number(last, "last", _INT)
        if not 0 <= first < last <= self.devices:
            raise InputError(f"expected devices of 0 to {self.devices}, found {first} to {last}", argument="last")
        self._writer.program(first, last)
        self._program += not self._empty
        self._buffers, self._empty = {}, True

    def _axis(self, name: Any, argument: str = "axis") -> Any:
        if not isinstance(name, str):
            raise InputError(f"expected the name of a mesh axis, found {name!r}", argument=argument)
        return self._mesh.axis(name, argument)

    def _axes(self, names: Axes, argument: str) -> List[Any]:
        return [self._axis(name, argument) for name in ([names] if isinstance(names, str) else _list(names, argument))]

    # ---- Buffers ------------------------------------------------------------------------------------------------------------------------

    def input(self, tensor: str, shape: Sequence[int], sharding: Sequence[Union[None, str, Sequence[str]]] = (), **how: Any) -> Buffer:
        """A shard on each device of an array of ``shape`` that the schedule is given.

        ``sharding``: per dimension None, an axis, or several axes, as ``jax.sharding.PartitionSpec``; dimensions at the end may be left out. ``dtype``,
        ``name`` (of the buffer; else the tensor's), and ``view``: ``{1: (a, b, c)}`` makes three dimensions of a device's part of dimension 1, which has
        ``a * b * c`` elements.
        """
        return self._shard("input", tensor, shape, sharding, **how)

    def output(self, tensor: str, shape: Sequence[int], sharding: Sequence[Union[None, str, Sequence[str]]] = (), **how: Any) -> Buffer:
        """A shard on each device of an array of ``shape`` that the schedule computes; arguments as of ``input``."""
        return self._shard("output", tensor, shape, sharding, **how)

    def scratch(self, name: str, shape: Sequence[int], *, dtype: Optional[str] = None) -> Buffer:
        """Storage of ``shape`` on each device, with no contents at first."""
        return self._add_buffer("scratch", name, "", self._shape(shape), (), [], dtype)

    def _shape(self, shape: Sequence[int]) -> Tuple[int, ...]:
        extents = tuple(whole_number(extent, "shape") for extent in _list(shape, "shape"))
        if any(extent < 1 for extent in extents):
            raise InputError(f"expected positive extents, found {extents}", argument="shape")
        return extents

    def _shard(self, role: str, tensor: str, shape: Sequence[int], sharding: Sequence[Any], *, name: Optional[str] = None, dtype: Optional[str] = None,
               view: Optional[Mapping[int, Sequence[int]]] = None) -> Buffer:
        whole = self._shape(shape)
        entries = _list(sharding, "sharding")
        if len(entries) > len(whole):
            raise InputError(f"{tensor!r} has {len(whole)} dimensions, found {len(entries)} entries", argument="sharding")
        entries += [None] * (len(whole) - len(entries))
        for dim in view or ():
            if whole_number(dim, "view") not in range(len(whole)):
                raise InputError(f"{tensor!r} has no dimension {dim}", argument="view")
        local: List[int] = []
        split: List[List[Any]] = []
        used = set()
        for dim, (extent, entry) in enumerate(zip(whole, entries)):
            axes = [] if entry is None else self._axes(entry, "sharding")
            parts = 1
            for axis in axes:
                if axis.axis in used:
                    raise InputError(f"a mesh axis divides {tensor!r} twice", argument="sharding")
                used.add(axis.axis)
                parts *= axis.size
            if extent % parts:
                raise InputError(f"dimension {dim} of {tensor!r} has {extent} elements, which {parts} devices do not divide", argument="shape")
            views = self._shape(view[dim]) if view and dim in view else (extent // parts,)
            elements = 1
            for length in views:
                elements *= length
            if elements != extent // parts:
                raise InputError(f"a device has {extent // parts} elements of dimension {dim} of {tensor!r}, the view has {elements}", argument="view")
            local += views
            split += [[axis for axis in axes if axis.size > 1]] + [[]] * (len(views) - 1)
        return self._add_buffer(role, tensor if name is None else name, tensor, tuple(local), whole, split, dtype)

    def _add_buffer(self, role: str, name: str, tensor: str, shape: Tuple[int, ...], whole: Tuple[int, ...], sharding: List[Any],
                    dtype: Optional[str]) -> Buffer:
        if _text(name, "name") in self._buffers:
            raise InputError(f"there is a buffer {name!r} already", argument="name")
        id = self._writer.buffer(name, list(shape), self._dtype if dtype is None else _text(dtype, "dtype"), role, _text(tensor, "tensor"), sharding)
        self._empty = False
        self._buffers[name] = Buffer(name, shape, tensor, whole, id, self._program, self)
        return self._buffers[name]

    # ---- Tasks --------------------------------------------------------------------------------------------------------------------------

    def matmul(self, left: Place, right: Place, out: Place, *, accumulate: bool = False, transpose_left: bool = False, transpose_right: bool = False,
               left_split: int = 1, right_split: int = 1, out_split: int = 1, **when: Any) -> Task:
        """``out = left @ right``, or ``out += left @ right``. left is [m, k], right [k, n], out [m, n]; a transposed operand is stored the other way round.

        ``..._split``: how many of an operand's first dimensions are its rows, where it has more than two.
        """
        operands = [self._region(place, name) for place, name in ((left, "left"), (right, "right"), (out, "out"))]
        splits = [whole_number(split, name, _INT) for split, name in ((left_split, "left_split"), (right_split, "right_split"), (out_split, "out_split"))]
        return self._task("matmul", _core.Matmul(*operands, *splits, bool(transpose_left), bool(transpose_right), bool(accumulate)), when)

    def shift(self, axis: str, by: Union[int, Index], source: Place, target: Place, *, add: bool = False, **when: Any) -> Task:
        """Each device sends ``source`` to the device ``by`` further along the axis, which receives it into its ``target``, or adds it there. Where an index makes
        ``by`` 0 or a multiple of the axis, a device moves nothing. Every shift pays the launch of a permute (``software.launch[permute]``)."""
        along = self._axis(axis)
        if not isinstance(by, Index) and whole_number(by, "by") % along.size == 0:
            raise InputError(f"a shift by {by} on {axis}={along.size} moves nothing; copy() and place() copy within a device", argument="by")
        op = _core.Shift(along, Index._of(by, "by")._affine(), self._region(source, "source"), self._region(target, "target"), bool(add))
        return self._task("shift", op, when)

    def send(self, source: Place, to: Mapping[str, Union[int, Index]], *, channel: int = 0, **when: Any) -> Task:
        """The sending half of a transfer. ``to``: the receiver's coordinates, on the axes where they differ. The first send on a channel to a device meets
        that device's first ``recv`` on it from the sender, and so on."""
        return self._task("send", _core.Send(whole_number(channel, "channel", _INT), self._peer(to, "to"), self._region(source, "source")), when)

    def recv(self, target: Place, sender: Mapping[str, Union[int, Index]], *, channel: int = 0, add: bool = False, **when: Any) -> Task:
        """The receiving half of a transfer. ``sender``: its coordinates, on the axes where they differ."""
        op = _core.Recv(whole_number(channel, "channel", _INT), self._peer(sender, "sender"), self._region(target, "target"), bool(add))
        return self._task("recv", op, when)

    def collective(self, kind: str, axes: Axes, input: Place, output: Place, *, dim: int = 0, split_dim: int = 0, root: int = 0,
                   pairs: Sequence[Tuple[int, int]] = (), **when: Any) -> Task:
        """An all-gather, reduce-scatter, all-reduce, all-to-all, broadcast, reduce or permute of all devices along the axes; ``run`` chooses its algorithm.

        ``dim``: of the output, that blocks join (of a reduce-scatter: of the input, that is cut); ``split_dim``: of the input of an all-to-all; ``root``:
        position along the axes, of a broadcast and reduce; ``pairs``: (from, to) positions, of a permute. A reduce-scatter or reduce leaves partial sums in
        an input that is scratch.
        """
        return self._task(str(kind), self._collective(kind, axes, input, output, dim, split_dim, root, pairs), when, "collective")

    def local(self, kind: str, reads: Sequence[Place], writes: Sequence[Place], *, factor: float = 1, unit: str = "core", features_first: bool = False,
              causal: bool = False, dims: Tuple[int, int] = (0, 0), splits: Sequence[int] = (),
              numbering: Sequence[Union[Index, int, Tuple[Union[Index, int], int, int]]] = (), classes: int = 0, **when: Any) -> Task:
        """Work on a device alone, of any kind that schedules have: add, scale, gelu, norm, attention, fft and so on, as listings and files name them.

        ``unit``: "core", or "dma" for beside the core. ``numbering``: the numbers of rows and columns in the whole array: that of the first one, or (first,
        block, apart). The other arguments belong to some kinds.
        """
        if unit not in ("core", "dma"):
            raise InputError(f'expected "core" or "dma", found {unit!r}', argument="unit")
        if not isinstance(factor, numbers.Real):
            raise InputError(f"expected a number, found {factor!r}", argument="factor")
        numbered = []
        for entry in _list(numbering, "numbering"):
            first, block, apart = _list(entry, "numbering", 3) if isinstance(entry, tuple) else (entry, 0, 1)
            numbered.append((Index._of(first, "numbering")._affine(), whole_number(block, "numbering"), whole_number(apart, "numbering")))
        op = _core.Local(str(kind).replace("_", "-"), [self._region(place, "reads") for place in _list(reads, "reads")],
                         [self._region(place, "writes") for place in _list(writes, "writes")], unit == "dma", float(factor), bool(features_first),
                         bool(causal), [whole_number(dim, "dims", _INT) for dim in _list(dims, "dims", 2)],
                         [whole_number(split, "splits", _INT) for split in _list(splits, "splits")], numbered, whole_number(classes, "classes"))
        return self._task(str(kind), op, when, "local")

    def copy(self, source: Place, target: Place, *, unit: str = "core", **when: Any) -> Task:
        """Copies a region within a device; the two have as many elements, in row-major order."""
        return self.local("copy", [source], [target], unit=unit, **when)

    def place(self, source: Place, target: Place, **when: Any) -> Task:
        """A copy that takes no time: on a machine the data lies there already."""
        return self.local("place", [source], [target], unit="dma", **when)

    def add(self, a: Place, b: Place, out: Place, *, unit: str = "core", **when: Any) -> Task:
        """``out = a + b``; ``out`` may be one of the two."""
        return self.local("add", [a, b], [out], unit=unit, **when)

    def _region(self, place: Any, argument: str) -> Any:
        region = Region(place, [(Index(), extent) for extent in place.shape]) if isinstance(place, Buffer) else place
        if not isinstance(region, Region):
            raise InputError(f"expected a buffer or a region of one, found {place!r}", argument=argument)
        if region.buffer._builder is not self:
            raise InputError(f"buffer {region.buffer.name!r} is of another builder", argument=argument)
        if region.buffer._program != self._program:
            raise InputError(f"buffer {region.buffer.name!r} is of another program", argument=argument)
        return region._core_region()

    def _peer(self, coordinates: Mapping[str, Union[int, Index]], argument: str) -> List[Any]:
        if not isinstance(coordinates, Mapping):
            raise InputError(f"expected coordinates by mesh axis, found {coordinates!r}", argument=argument)
        for axis in coordinates:
            self._axis(axis, argument)
        return [Index._of(coordinates.get(axis, self.index(axis)), argument)._affine() for axis in self._mesh.names()]

    def _collective(self, kind: str, axes: Axes, input: Place, output: Place, dim: int, split_dim: int, root: int, pairs: Sequence[Tuple[int, int]]) -> Any:
        ends = [tuple(whole_number(end, "pairs") for end in _list(pair, "pairs", 2)) for pair in _list(pairs, "pairs")]
        return _core.Collective(str(kind).replace("_", "-"), self._axes(axes, "axes"), self._region(input, "input"), self._region(output, "output"),
                                whole_number(dim, "dim", _INT), whole_number(split_dim, "split_dim", _INT), whole_number(root, "root"), ends)

    def _task(self, default_label: str, op: Any, when: Mapping[str, Any], call: str = "") -> Task:
        call = call or default_label
        for name in when:
            if name not in ("label", "where", "after"):
                raise TypeError(f"{call}() got an unexpected keyword argument {name!r}")
        label = when.get("label") or default_label
        where, after = when.get("where"), when.get("after")
        if where is not None and not isinstance(where, Where):
            raise InputError(f"expected a condition on an index, as `i == 0`, found {where!r}", argument="where")
        edges = []
        for task in [] if after is None else [after] if isinstance(after, Task) else _list(after, "after"):
            if not isinstance(task, Task) or task._builder is not self or task._program != self._program:
                raise InputError(f"expected tasks of this program, found {task!r}", argument="after")
            if task._gates != "both" and not isinstance(op, _core.Shift):
                raise InputError(f"only a shift has halves that wait, found {call}", argument="after")
            edges.append(_core.Edge(task.number, task._done, task._gates))
        number = self._writer.task(call, str(label), op, edges, where._guard() if where is not None else [])
        self._empty = False
        return Task(str(label), number, self._program, self, isinstance(op, _core.Shift))

    # ---- The whole ----------------------------------------------------------------------------------------------------------------------

    def claim_product(self, out: Buffer, left: Buffer, right: Buffer, *, transpose_left: bool = False, transpose_right: bool = False) -> None:
        """What ``check`` proves: ``out = left @ right``, as whole arrays; a transposed one is given as [k, m] or [n, k]. Called again, it claims another
        product too."""
        shapes = []
        for buffer, name in ((out, "out"), (left, "left"), (right, "right")):
            if not isinstance(buffer, Buffer) or len(buffer.global_shape) != 2:
                raise InputError(f"expected an input or output of two dimensions, found {buffer!r}", argument=name)
            shapes.append(buffer.global_shape)
        (m, n), left_shape, right_shape = shapes[0], shapes[1][::-1] if transpose_left else shapes[1], shapes[2][::-1] if transpose_right else shapes[2]
        if left_shape[0] != m or right_shape[1] != n or left_shape[1] != right_shape[0]:
            raise InputError(f"{left_shape} times {right_shape} is not {shapes[0]}", argument="out")
        self._writer.claim_product(out.tensor, left.tensor, right.tensor, m, n, left_shape[1], bool(transpose_left), bool(transpose_right))

    def claim_collective(self, kind: str, axes: Axes, input: Place, output: Place, *, dim: int = 0, split_dim: int = 0, root: int = 0,
                         pairs: Sequence[Tuple[int, int]] = ()) -> None:
        """What ``check`` proves: the schedule is this collective, from one region to another of the first program."""
        if self._program:
            raise InputError("belongs to the first program", argument="claim_collective")
        self._writer.claim_collective(self._collective(kind, axes, input, output, dim, split_dim, root, pairs))

    def edges(self) -> DerivedEdges:
        """What ``build()`` adds to the edges given as ``after``, and why; it prints as a table. No edge is there that others imply."""
        return DerivedEdges(DerivedEdge(*row) for row in self._writer.edges())

    def build(self) -> Schedule:
        """The schedule, with the edges that its tasks need. Raises InputError for transfers without a partner. The builder may be used on."""
        return Schedule._of(self._writer.finish())

"""As much of JAX's interface as capture_jax.py uses, interpreted on lists, for its tests: shapes are checked at once, values are computed when asked
for. Functions take exactly the parameters that JAX documents, so that a name or a shape that JAX would refuse is refused here too. It says
nothing about compilation or time.
"""

import itertools
import math
import types

DTYPES = {"bfloat16": 2, "float32": 4, "int32": 4}
_meshes = []  # of the shard_map that is running


def _strides(shape):
    return [math.prod(shape[d + 1:]) for d in range(len(shape))]


def _places(shape):
    return itertools.product(*map(range, shape))


class Array:
    """What each device holds: one shape, and a list of values per device in row-major order, made by `values()` when needed."""

    def __init__(self, shape, dtype, values):
        assert all(isinstance(extent, int) and extent >= 0 for extent in shape), shape
        assert dtype in DTYPES, dtype
        self.shape, self.dtype, self._values, self._made = tuple(shape), dtype, values, None

    @property
    def blocks(self):
        if self._made is None:
            self._made = self._values()
            assert all(len(block) == math.prod(self.shape) for block in self._made)
        return self._made

    def at(self, source, shape):
        """A new array whose element at each place is this one's element at source(place)."""
        strides = _strides(self.shape)

        def values():
            offsets = [sum(i * s for i, s in zip(source(place), strides)) for place in _places(shape)]
            return [[block[offset] for offset in offsets] for block in self.blocks]

        return Array(shape, self.dtype, values)

    def reshape(self, *shape):
        shape = shape[0] if len(shape) == 1 and isinstance(shape[0], tuple) else shape
        assert math.prod(shape) == math.prod(self.shape), (self.shape, shape)
        return Array(shape, self.dtype, lambda: self.blocks)

    def __getitem__(self, keys):
        keys = (keys if isinstance(keys, tuple) else (keys,)) + (slice(None),) * len(self.shape)
        starts, shape, kept = [], [], []
        for extent, key in zip(self.shape, keys):
            if isinstance(key, int):
                assert 0 <= key < extent, (key, self.shape)
                starts.append(key)
                kept.append(False)
            else:
                start, stop, step = key.indices(extent)
                assert step == 1
                starts.append(start)
                shape.append(max(stop - start, 0))
                kept.append(True)

        def source(place):
            rest = iter(place)
            return [start + (next(rest) if keep else 0) for start, keep in zip(starts, kept)]

        return self.at(source, tuple(shape))

    @property
    def T(self):
        return self.at(lambda place: place[::-1], self.shape[::-1])

    def astype(self, dtype):
        return Array(self.shape, dtype, lambda: self.blocks)

    def _with(self, other, function):
        if isinstance(other, Array):
            assert (self.shape, self.dtype) == (other.shape, other.dtype), (self.shape, self.dtype, other.shape, other.dtype)
            return Array(self.shape, self.dtype, lambda: [list(map(function, a, b)) for a, b in zip(self.blocks, other.blocks)])
        return Array(self.shape, self.dtype, lambda: [[function(a, other) for a in block] for block in self.blocks])

    def __add__(self, other):
        return self._with(other, lambda a, b: a + b)

    __radd__ = __add__

    def __sub__(self, other):
        return self._with(other, lambda a, b: a - b)

    def __mul__(self, other):
        return self._with(other, lambda a, b: a * b)

    def __mod__(self, other):
        return self._with(other, lambda a, b: a % b)

    def __truediv__(self, other):
        divided = self._with(other, lambda a, b: a / b)
        return divided.astype("float32") if self.dtype == "int32" else divided


# ------------------------------------------------------------------------------------------------------------------------ jax.numpy

def _zeros(shape, dtype):
    return Array(shape, dtype, lambda: [[0.0] * math.prod(shape)] * _meshes[-1].devices)


def _dot(a, b, *, precision=None):
    assert precision in (None, "highest")
    (rows, inner), (other, columns) = a.shape, b.shape
    assert inner == other and a.dtype == b.dtype, (a.shape, b.shape)

    def values():
        return [[sum(x[r * inner + i] * y[i * columns + c] for i in range(inner)) for r in range(rows) for c in range(columns)]
                for x, y in zip(a.blocks, b.blocks)]

    return Array((rows, columns), a.dtype, values)


def _join(parts, axis):
    """Arrays one after the other along a dimension."""
    first = parts[0]
    rest = first.shape[:axis] + first.shape[axis + 1:]
    assert all(p.shape[:axis] + p.shape[axis + 1:] == rest and p.dtype == first.dtype for p in parts)
    shape = first.shape[:axis] + (sum(p.shape[axis] for p in parts),) + first.shape[axis + 1:]

    def values():
        owners = [(part, i) for part in parts for i in range(part.shape[axis])]
        made = []
        for device in range(len(first.blocks)):
            block = []
            for place in _places(shape):
                part, i = owners[place[axis]]
                inside = place[:axis] + (i,) + place[axis + 1:]
                block.append(part.blocks[device][sum(p * s for p, s in zip(inside, _strides(part.shape)))])
            made.append(block)
        return made

    return Array(shape, first.dtype, values)


def _concatenate(arrays, axis=0):
    return _join(arrays, axis)


def _clip(arr, low, high):
    return Array(arr.shape, arr.dtype, lambda: [[min(max(value, low), high) for value in block] for block in arr.blocks])


numpy = types.SimpleNamespace(bfloat16="bfloat16", float32="float32", int32="int32", zeros=_zeros, dot=_dot, concatenate=_concatenate, clip=_clip)


# -------------------------------------------------------------------------------------------------------------------------- jax.lax

def _groups(axis_name):
    """The devices of each group along the axes, in their order."""
    mesh = _meshes[-1]
    names = (axis_name,) if isinstance(axis_name, str) else tuple(axis_name)
    assert all(name in mesh.names for name in names), (names, mesh.names)
    groups = {}
    for device, place in enumerate(_places(mesh.sizes)):
        rest = tuple(i for name, i in zip(mesh.names, place) if name not in names)
        order = tuple(place[mesh.names.index(name)] for name in names)
        groups.setdefault(rest, []).append((order, device))
    return [[device for _, device in sorted(group)] for group in groups.values()]


def _exchange(x, axis_name, shape, function):
    """A collective: function(blocks of a group in order) gives the results of the group in order."""
    groups = _groups(axis_name)

    def values():
        made = [None] * len(x.blocks)
        for group in groups:
            alone = [Array(x.shape, x.dtype, lambda block=x.blocks[device]: [block]) for device in group]
            for device, result in zip(group, function(alone)):
                assert result.shape == shape, (result.shape, shape)
                made[device] = result.blocks[0]
        return made

    return Array(shape, x.dtype, values)


def _scaled(shape, dim, times, over=1):
    assert shape[dim] * times % over == 0, (shape, dim, over)
    return shape[:dim] + (shape[dim] * times // over,) + shape[dim + 1:]


def _part(x, dim, number, parts):
    length = x.shape[dim] // parts
    return x[(slice(None),) * dim + (slice(number * length, (number + 1) * length),)]


def _size(axis_name):
    return len(_groups(axis_name)[0])


def _total(arrays):
    return sum(arrays[1:], arrays[0])


def _all_gather(x, axis_name, *, axis_index_groups=None, axis=0, tiled=False):
    assert tiled and axis_index_groups is None
    return _exchange(x, axis_name, _scaled(x.shape, axis, _size(axis_name)), lambda group: [_join(group, axis)] * len(group))


def _psum(x, axis_name, *, axis_index_groups=None):
    assert axis_index_groups is None
    return _exchange(x, axis_name, x.shape, lambda group: [_total(group)] * len(group))


def _psum_scatter(x, axis_name, *, scatter_dimension=0, axis_index_groups=None, tiled=False):
    assert tiled and axis_index_groups is None
    size = _size(axis_name)
    return _exchange(x, axis_name, _scaled(x.shape, scatter_dimension, 1, size),
                     lambda group: [_part(_total(group), scatter_dimension, i, size) for i in range(size)])


def _all_to_all(x, axis_name, split_axis, concat_axis, *, axis_index_groups=None, tiled=False):
    assert tiled and axis_index_groups is None and split_axis == concat_axis
    size = _size(axis_name)
    _scaled(x.shape, split_axis, 1, size)
    return _exchange(x, axis_name, x.shape,
                     lambda group: [_join([_part(sender, split_axis, i, size) for sender in group], concat_axis) for i in range(size)])


def _ppermute(x, axis_name, perm):
    size = _size(axis_name)
    senders = {target: source for source, target in perm}
    assert len(senders) == len(perm) == size and all(0 <= i < size for pair in perm for i in pair), perm
    return _exchange(x, axis_name, x.shape, lambda group: [group[senders[i]] for i in range(size)])


def _axis_index(axis_name):
    groups = _groups(axis_name)

    def values():
        index = {device: i for group in groups for i, device in enumerate(group)}
        return [[index[device]] for device in range(len(index))]

    return Array((), "int32", values)


def _starts(start, devices):
    if not isinstance(start, Array):
        return [start] * devices
    assert start.shape == () and start.dtype == "int32"
    return [block[0] for block in start.blocks]


def _dynamic_slice_in_dim(operand, start_index, slice_size, axis=0):
    shape = operand.shape[:axis] + (slice_size,) + operand.shape[axis + 1:]
    assert slice_size <= operand.shape[axis]

    def values():
        made = []
        for block, start in zip(operand.blocks, _starts(start_index, len(operand.blocks))):
            assert 0 <= start <= operand.shape[axis] - slice_size  # JAX would clamp it
            one = Array(operand.shape, operand.dtype, lambda block=block: [block])
            made.append(one[(slice(None),) * axis + (slice(start, start + slice_size),)].blocks[0])
        return made

    return Array(shape, operand.dtype, values)


def _dynamic_update_slice(operand, update, start_indices):
    assert operand.dtype == update.dtype and len(operand.shape) == len(update.shape) == len(start_indices)
    assert all(u <= o for u, o in zip(update.shape, operand.shape)), (update.shape, operand.shape)

    def values():
        devices = len(operand.blocks)
        starts = list(zip(*(_starts(start, devices) for start in start_indices)))
        made = []
        for old, new, start in zip(operand.blocks, update.blocks, starts):
            assert all(0 <= s <= o - u for s, o, u in zip(start, operand.shape, update.shape)), (start, operand.shape, update.shape)
            block = list(old)
            for value, place in zip(new, _places(update.shape)):
                block[sum((p + s) * stride for p, s, stride in zip(place, start, _strides(operand.shape)))] = value
            made.append(block)
        return made

    return Array(operand.shape, operand.dtype, values)


def _dynamic_update_slice_in_dim(operand, update, start_index, axis):
    starts = [0] * len(operand.shape)
    starts[axis] = start_index
    return _dynamic_update_slice(operand, update, starts)


def _kinds(tree):
    return tuple(map(_kinds, tree)) if isinstance(tree, tuple) else (tree.shape, tree.dtype)


def _fori_loop(lower, upper, body_fun, init_val):
    value = init_val
    for i in range(lower, upper):
        following = body_fun(i, value)
        assert _kinds(following) == _kinds(value), f"the loop carries {_kinds(value)}, then {_kinds(following)}"
        value = following
    return value


def _broadcasted_iota(dtype, shape, dimension):
    return Array(shape, dtype, lambda: [[place[dimension] for place in _places(shape)]])


lax = types.SimpleNamespace(Precision=types.SimpleNamespace(HIGHEST="highest"), all_gather=_all_gather, psum=_psum, psum_scatter=_psum_scatter,
                            all_to_all=_all_to_all, ppermute=_ppermute, axis_index=_axis_index, dynamic_slice_in_dim=_dynamic_slice_in_dim,
                            dynamic_update_slice=_dynamic_update_slice,
                            dynamic_update_slice_in_dim=_dynamic_update_slice_in_dim, fori_loop=_fori_loop, broadcasted_iota=_broadcasted_iota)


# --------------------------------------------------------------------------------------------------------------------- jax.sharding

class Mesh:
    """Names and sizes; devices in row-major order."""

    def __init__(self, devices, axis_names):
        self.sizes, self.names = tuple(devices.shape), tuple(axis_names)
        assert len(self.sizes) == len(self.names)
        self.devices = math.prod(self.sizes)

    def __enter__(self):
        _meshes.append(self)
        return self

    def __exit__(self, *_):
        _meshes.pop()


class PartitionSpec(tuple):
    def __new__(cls, *parts):
        return tuple.__new__(cls, parts)


class NamedSharding:
    def __init__(self, mesh, spec):
        self.mesh, self.spec = mesh, spec


def _check_rows_over_all(mesh, spec):
    assert tuple(spec) == (mesh.names, None), spec


def shard_map(f, /, *, out_specs, in_specs=None, mesh=None, axis_names=frozenset(), check_vma=True):
    """As jax.shard_map since 0.6. Loops that carry what differs between devices pass only without the check."""
    assert not check_vma and not axis_names

    def mapped(*operands):
        for spec in (in_specs, out_specs):
            _check_rows_over_all(mesh, spec)
        with mesh:
            return f(*operands)

    return mapped


def old_shard_map(f, mesh, in_specs, out_specs, check_rep=True, auto=frozenset()):
    """As jax.experimental.shard_map.shard_map before that."""
    assert not auto
    return shard_map(f, mesh=mesh, in_specs=in_specs, out_specs=out_specs, check_vma=check_rep)


# ------------------------------------------------------------------------------------------------------------------------------ jax

class _Compiled:
    def __init__(self, function, kinds):
        self.function, self.kinds = function, kinds

    def __call__(self, *operands):
        assert [_kinds(operand) for operand in operands] == self.kinds
        return self.function(*operands)

    def as_text(self):
        return f"HloModule jit_{self.function.__name__}\n"


class _Jitted:
    """A function of no arguments gives a global array, which is cut over the devices by rows."""

    def __init__(self, function, out_shardings=None):
        self.function, self.out_shardings = function, out_shardings

    def lower(self, *operands):
        kinds = [_kinds(operand) for operand in operands]
        return types.SimpleNamespace(compile=lambda: _Compiled(self.function, kinds))

    def __call__(self):
        whole, mesh = self.function(), self.out_shardings.mesh
        _check_rows_over_all(mesh, self.out_shardings.spec)
        shape = _scaled(whole.shape, 0, 1, mesh.devices)
        count = math.prod(shape)
        return Array(shape, whole.dtype, lambda: [whole.blocks[0][i * count:(i + 1) * count] for i in range(mesh.devices)])


def module(devices, new=True):
    """A module to stand for `jax` in sys.modules."""
    made = types.ModuleType("jax")
    made.numpy, made.lax = numpy, lax
    made.__version__ = "0.0.test"
    made.devices = lambda: list(devices)
    made.process_index = lambda: 0
    made.process_count = lambda: 1
    made.block_until_ready = lambda tree: tree
    made.jit = _Jitted
    made.sharding = types.SimpleNamespace(Mesh=Mesh, PartitionSpec=PartitionSpec, NamedSharding=NamedSharding)
    if new:
        made.shard_map = shard_map
    return made

# Written by tools/python/scripts/make_stubs.py from the options of the command: run that instead of editing this.
import os
from typing import Any, Callable, Dict, Literal, Mapping, Optional, Protocol, Sequence, Tuple, Union

from ._objects import Machine, Plan, Schedule
from ._results import Calibration, Check, Comparison, Result, Run, TrainingTuning, Tuning

Progress = Optional[Callable[[str], Any]]
_What = Union[Machine, Schedule, Plan, str, None]
_Path = Union[str, os.PathLike[str]]
_Value = Union[str, int, float]
_Values = Union[_Value, Sequence[_Value], Sequence[Sequence[_Value]]]  # one, several, several lists
_Pairs = Union[_Values, Mapping[str, Union[_Value, Sequence[_Value]]]]

class _JaxMesh(Protocol):  # jax.sharding.Mesh
    @property
    def axis_names(self) -> Tuple[Any, ...]: ...
    @property
    def devices(self) -> Any: ...

class _JaxStage(Protocol):  # jax.stages.Lowered, Compiled
    def as_text(self) -> str: ...

_Module = Union[_Path, bytes, _JaxStage]  # a file, or what is in it
_Mesh = Union[str, Mapping[str, int], _JaxMesh]
_Extents = Union[str, Sequence[int]]
_Gemm = Union[str, Tuple[int, int, int], Tuple[int, int, int, str], Mapping[str, Union[int, str]]]
_Spec = Union[str, Sequence[Union[None, str, Sequence[str]]]]

def _call(command: Tuple[str, ...], keywords: Mapping[str, Any], progress: Progress = ..., format: str = ..., **how: Any) -> Tuple[int, str, str, Any]: ...
def machine(name_or_file: _Path, values: Optional[Mapping[str, _Value]] = ...) -> Machine: ...
def run(
    subject: _What = ..., /, *, progress: Progress = ..., machine: Optional[Union[Machine, _Path]] = ..., set: Optional[_Pairs] = ..., slice: Optional[_Extents]
    = ..., strict_slice: Optional[bool] = ..., wrap: Optional[_Values] = ..., mesh: Optional[_Mesh] = ..., mesh_order: Optional[_Path] = ..., allow_split_axes:
    Optional[bool] = ..., contiguous_submeshes: Optional[bool] = ..., devices: Optional[_Values] = ..., precision: Optional[Literal['default', 'high',
    'highest']] = ..., topology: Optional[_Path] = ..., pods: Optional[Union[int, str]] = ..., fail: Optional[_Values] = ..., degrade: Optional[_Pairs] = ...,
    straggler: Optional[_Pairs] = ..., seed: Optional[Union[int, str]] = ..., gemm: Optional[_Gemm] = ..., collective: Optional[Literal['all-gather',
    'reduce-scatter', 'all-reduce', 'all-to-all', 'broadcast', 'reduce', 'permute']] = ..., schedule: Optional[Union[Schedule, _Path]] = ..., msccl:
    Optional[_Path] = ..., chakra: Optional[_Path] = ..., chakra_groups: Optional[_Path] = ..., chakra_cost: Optional[Literal['recorded', 'flops']] = ..., plan:
    Optional[Union[Plan, _Path]] = ..., program: Optional[_Path] = ..., shape: Optional[Union[str, Mapping[str, _Extents]]] = ..., shard: Optional[Union[str,
    Mapping[str, _Spec]]] = ..., out: Optional[Union[str, Mapping[str, _Spec]]] = ..., choose: Optional[Literal['default', 'bytes', 'time']] = ..., chain:
    Optional[bool] = ..., minimise: Optional[Literal['bytes', 'collectives', 'time']] = ..., replicate: Optional[_Values] = ..., look_ahead: Optional[Union[int,
    str]] = ..., order: Optional[Literal['transposed', 'natural']] = ..., overlap: Optional[Union[int, str]] = ..., axis: Optional[_Values] = ..., bytes:
    Optional[_Values] = ..., dtype: Optional[Literal['f32', 'bf16', 'f8e4m3fn', 'f8e5m2', 's8', 'c64', 's32']] = ..., root: Optional[Union[int, str]] = ...,
    chunks: Optional[Union[int, str]] = ..., shift: Optional[Union[int, str]] = ..., pairs: Optional[_Path] = ..., pass_: Optional[Literal['forward',
    'backward', 'both']] = ..., pad: Optional[bool] = ..., algorithm: Optional[_Pairs] = ..., dataflow: Optional[_Values] = ..., slice_count: Optional[_Pairs] =
    ..., block: Optional[Union[int, str]] = ..., prefetch: Optional[Union[int, str]] = ..., slice_copies: Optional[bool] = ..., wang_operand:
    Optional[Literal['x', 'w']] = ..., collectives: Optional[_Values] = ..., given: Optional[_Values] = ..., scenario: Optional[_Path] = ..., workload:
    Optional[_Path] = ..., only: Optional[Literal['gemm', 'other']] = ..., batch: Optional[Union[int, str]] = ..., seq: Optional[Union[int, str]] = ..., heads:
    Optional[Union[int, str]] = ..., kv_heads: Optional[Union[int, str]] = ..., head_dim: Optional[Union[int, str]] = ..., ff: Optional[Union[int, str]] = ...,
    layers: Optional[Union[int, str]] = ..., training: Optional[Union[_Path, Sequence[_Path]]] = ..., maxtext: Optional[_Path] = ..., batch_per_device:
    Optional[_Values] = ..., microbatches: Optional[Union[int, str]] = ..., pipeline: Optional[Literal['gpipe', '1f1b', 'eager-1f1b', 'interleaved-1f1b',
    'kimi-k2', 'zero-bubble', 'dual-pipe-v']] = ..., virtual_stages: Optional[Union[int, str]] = ..., fuse_steady_state: Optional[bool] = ..., remat:
    Optional[_Values] = ..., scan: Optional[bool] = ..., optimizer: Optional[Literal['adamw', 'sgd']] = ..., shard_optimizer_over_data: Optional[bool] = ...,
    steps: Optional[Union[int, str]] = ..., hlo: Optional[_Module] = ..., hlo_cost: Optional[Literal['model', 'estimated-cycles']] = ..., clock:
    Optional[_Values] = ..., hlo_schedule: Optional[Literal['text', 'overlap']] = ..., rewrite: Optional[Literal['reduce-scatter', 'bf16-reductions', 'split',
    'combine', 'prefetch']] = ..., combine_threshold: Optional[_Values] = ..., trip_count: Optional[_Pairs] = ..., branch: Optional[_Pairs] = ..., custom_call:
    Optional[_Pairs] = ..., ragged: Optional[Union[_Path, Sequence[_Path]]] = ..., engine: Optional[Literal['des', 'simgrid', 'analytic']] = ..., fold:
    Optional[Literal['auto', 'off']] = ..., calls: Optional[Literal['auto', 'inline']] = ..., force: Optional[bool] = ..., threads: Optional[_Values] = ...,
    explain: Optional[bool] = ..., advise: Optional[bool] = ..., strict: Optional[bool] = ..., per: Optional[_Values] = ..., expect: Optional[_Values] = ...,
    trace: Optional[_Path] = ..., trace_devices: Optional[_Values] = ..., with_: Optional[_Path] = ..., with_step: Optional[_Values] = ..., record:
    Optional[_Path] = ..., chakra_out: Optional[_Path] = ..., chakra_collectives: Optional[_Values] = ..., nccl_tuner: Optional[_Path] = ..., output:
    Optional[_Path] = ...
) -> Run: ...
def check(
    subject: _What = ..., /, *, progress: Progress = ..., machine: Optional[Union[Machine, _Path]] = ..., set: Optional[_Pairs] = ..., slice: Optional[_Extents]
    = ..., strict_slice: Optional[bool] = ..., wrap: Optional[_Values] = ..., mesh: Optional[_Mesh] = ..., mesh_order: Optional[_Path] = ..., allow_split_axes:
    Optional[bool] = ..., contiguous_submeshes: Optional[bool] = ..., devices: Optional[_Values] = ..., gemm: Optional[_Gemm] = ..., collective:
    Optional[Literal['all-gather', 'reduce-scatter', 'all-reduce', 'all-to-all', 'broadcast', 'reduce', 'permute']] = ..., schedule: Optional[Union[Schedule,
    _Path]] = ..., msccl: Optional[_Path] = ..., chakra: Optional[_Path] = ..., chakra_groups: Optional[_Path] = ..., chakra_cost: Optional[Literal['recorded',
    'flops']] = ..., plan: Optional[Union[Plan, _Path]] = ..., program: Optional[_Path] = ..., shape: Optional[Union[str, Mapping[str, _Extents]]] = ..., shard:
    Optional[Union[str, Mapping[str, _Spec]]] = ..., out: Optional[Union[str, Mapping[str, _Spec]]] = ..., choose: Optional[Literal['default', 'bytes', 'time']]
    = ..., chain: Optional[bool] = ..., minimise: Optional[Literal['bytes', 'collectives', 'time']] = ..., replicate: Optional[_Values] = ..., look_ahead:
    Optional[Union[int, str]] = ..., order: Optional[Literal['transposed', 'natural']] = ..., overlap: Optional[Union[int, str]] = ..., axis: Optional[_Values]
    = ..., bytes: Optional[_Values] = ..., dtype: Optional[Literal['f32', 'bf16', 'f8e4m3fn', 'f8e5m2', 's8', 'c64', 's32']] = ..., root: Optional[Union[int,
    str]] = ..., chunks: Optional[Union[int, str]] = ..., shift: Optional[Union[int, str]] = ..., pairs: Optional[_Path] = ..., pass_:
    Optional[Literal['forward', 'backward', 'both']] = ..., pad: Optional[bool] = ..., algorithm: Optional[_Pairs] = ..., dataflow: Optional[_Values] = ...,
    slice_count: Optional[_Pairs] = ..., block: Optional[Union[int, str]] = ..., prefetch: Optional[Union[int, str]] = ..., slice_copies: Optional[bool] = ...,
    wang_operand: Optional[Literal['x', 'w']] = ..., collectives: Optional[_Values] = ..., given: Optional[_Values] = ..., scenario: Optional[_Path] = ...,
    workload: Optional[_Path] = ..., only: Optional[Literal['gemm', 'other']] = ..., batch: Optional[Union[int, str]] = ..., seq: Optional[Union[int, str]] =
    ..., heads: Optional[Union[int, str]] = ..., kv_heads: Optional[Union[int, str]] = ..., head_dim: Optional[Union[int, str]] = ..., ff: Optional[Union[int,
    str]] = ..., layers: Optional[Union[int, str]] = ..., training: Optional[Union[_Path, Sequence[_Path]]] = ..., maxtext: Optional[_Path] = ...,
    batch_per_device: Optional[_Values] = ..., microbatches: Optional[Union[int, str]] = ..., pipeline: Optional[Literal['gpipe', '1f1b', 'eager-1f1b',
    'interleaved-1f1b', 'kimi-k2', 'zero-bubble', 'dual-pipe-v']] = ..., virtual_stages: Optional[Union[int, str]] = ..., fuse_steady_state: Optional[bool] =
    ..., remat: Optional[_Values] = ..., scan: Optional[bool] = ..., optimizer: Optional[Literal['adamw', 'sgd']] = ..., shard_optimizer_over_data:
    Optional[bool] = ..., steps: Optional[Union[int, str]] = ..., hlo: Optional[_Module] = ..., hlo_cost: Optional[Literal['model', 'estimated-cycles']] = ...,
    clock: Optional[_Values] = ..., hlo_schedule: Optional[Literal['text', 'overlap']] = ..., rewrite: Optional[Literal['reduce-scatter', 'bf16-reductions',
    'split', 'combine', 'prefetch']] = ..., combine_threshold: Optional[_Values] = ..., trip_count: Optional[_Pairs] = ..., branch: Optional[_Pairs] = ...,
    custom_call: Optional[_Pairs] = ..., ragged: Optional[Union[_Path, Sequence[_Path]]] = ..., equals: Optional[_Values] = ..., orders: Optional[_Values] =
    ..., seed: Optional[_Values] = ..., threads: Optional[_Values] = ..., data: Optional[Literal['random', 'arange', 'ones']] = ..., force: Optional[bool] =
    ..., structure_only: Optional[bool] = ..., edges: Optional[bool] = ..., record: Optional[_Path] = ..., output: Optional[_Path] = ...
) -> Check: ...
def compare(
    subject: _What = ..., /, *, progress: Progress = ..., machine: Optional[Union[Union[Machine, _Path], Sequence[Union[Machine, _Path]]]] = ..., set:
    Optional[_Pairs] = ..., slice: Optional[Union[_Extents, Sequence[_Extents]]] = ..., strict_slice: Optional[bool] = ..., wrap: Optional[_Values] = ..., mesh:
    Optional[Union[_Mesh, Sequence[_Mesh]]] = ..., mesh_order: Optional[_Path] = ..., allow_split_axes: Optional[bool] = ..., contiguous_submeshes:
    Optional[bool] = ..., devices: Optional[_Values] = ..., precision: Optional[Literal['default', 'high', 'highest']] = ..., topology: Optional[_Path] = ...,
    pods: Optional[Union[int, str]] = ..., fail: Optional[_Values] = ..., degrade: Optional[_Pairs] = ..., straggler: Optional[_Pairs] = ..., seed:
    Optional[Union[int, str]] = ..., gemm: Optional[_Gemm] = ..., collective: Optional[_Values] = ..., msccl: Optional[Union[_Path, Sequence[_Path]]] = ...,
    program: Optional[_Path] = ..., shape: Optional[Union[str, Mapping[str, _Extents]]] = ..., shard: Optional[Union[str, Mapping[str, _Spec]]] = ..., out:
    Optional[Union[str, Mapping[str, _Spec]]] = ..., choose: Optional[Literal['default', 'bytes', 'time']] = ..., chain: Optional[bool] = ..., minimise:
    Optional[Literal['bytes', 'collectives', 'time']] = ..., replicate: Optional[_Values] = ..., look_ahead: Optional[Union[int, str]] = ..., order:
    Optional[Literal['transposed', 'natural']] = ..., overlap: Optional[Union[int, str]] = ..., axis: Optional[_Values] = ..., bytes: Optional[_Values] = ...,
    dtype: Optional[Literal['f32', 'bf16', 'f8e4m3fn', 'f8e5m2', 's8', 'c64', 's32']] = ..., root: Optional[Union[int, str]] = ..., chunks: Optional[Union[int,
    str]] = ..., shift: Optional[Union[int, str]] = ..., pairs: Optional[_Path] = ..., pass_: Optional[Literal['forward', 'backward', 'both']] = ..., pad:
    Optional[bool] = ..., algorithm: Optional[_Pairs] = ..., dataflow: Optional[_Values] = ..., slice_count: Optional[_Pairs] = ..., block: Optional[Union[int,
    str]] = ..., prefetch: Optional[Union[int, str]] = ..., slice_copies: Optional[bool] = ..., wang_operand: Optional[Literal['x', 'w']] = ..., collectives:
    Optional[_Values] = ..., given: Optional[_Values] = ..., workload: Optional[_Path] = ..., only: Optional[Literal['gemm', 'other']] = ..., batch:
    Optional[Union[int, str]] = ..., seq: Optional[Union[int, str]] = ..., heads: Optional[Union[int, str]] = ..., kv_heads: Optional[Union[int, str]] = ...,
    head_dim: Optional[Union[int, str]] = ..., ff: Optional[Union[int, str]] = ..., layers: Optional[Union[int, str]] = ..., training: Optional[Union[_Path,
    Sequence[_Path]]] = ..., maxtext: Optional[_Path] = ..., batch_per_device: Optional[_Values] = ..., microbatches: Optional[Union[int, str]] = ..., pipeline:
    Optional[_Values] = ..., virtual_stages: Optional[Union[int, str]] = ..., fuse_steady_state: Optional[bool] = ..., remat: Optional[_Values] = ..., scan:
    Optional[bool] = ..., optimizer: Optional[Literal['adamw', 'sgd']] = ..., shard_optimizer_over_data: Optional[bool] = ..., steps: Optional[Union[int, str]]
    = ..., hlo: Optional[_Module] = ..., hlo_cost: Optional[Literal['model', 'estimated-cycles']] = ..., clock: Optional[_Values] = ..., hlo_schedule:
    Optional[Literal['text', 'overlap']] = ..., rewrite: Optional[Literal['reduce-scatter', 'bf16-reductions', 'split', 'combine', 'prefetch']] = ...,
    combine_threshold: Optional[_Values] = ..., trip_count: Optional[_Pairs] = ..., branch: Optional[_Pairs] = ..., custom_call: Optional[_Pairs] = ..., ragged:
    Optional[Union[_Path, Sequence[_Path]]] = ..., algorithms: Optional[_Pairs] = ..., vary: Optional[_Pairs] = ..., equal: Optional[_Values] = ..., with_:
    Optional[_Path] = ..., crossover: Optional[_Pairs] = ..., top: Optional[_Values] = ..., engine: Optional[Literal['des', 'simgrid', 'analytic']] = ..., fold:
    Optional[Literal['auto', 'off']] = ..., calls: Optional[Literal['auto', 'inline']] = ..., force: Optional[bool] = ..., threads: Optional[_Values] = ...,
    record: Optional[_Path] = ..., expect: Optional[_Values] = ..., write_nccl_tuner: Optional[_Path] = ..., output: Optional[_Path] = ...
) -> Union[Comparison, Result]: ...
def tune(
    subject: _What = ..., /, *, progress: Progress = ..., client: Any = ..., chips: Optional[_Values] = ..., slices: Optional[_Values] = ..., machine:
    Optional[Union[Machine, _Path]] = ..., set: Optional[_Pairs] = ..., slice: Optional[_Extents] = ..., strict_slice: Optional[bool] = ..., wrap:
    Optional[_Values] = ..., mesh: Optional[_Mesh] = ..., mesh_order: Optional[_Path] = ..., allow_split_axes: Optional[bool] = ..., contiguous_submeshes:
    Optional[bool] = ..., precision: Optional[Literal['default', 'high', 'highest']] = ..., topology: Optional[_Path] = ..., pods: Optional[Union[int, str]] =
    ..., fail: Optional[_Values] = ..., degrade: Optional[_Pairs] = ..., straggler: Optional[_Pairs] = ..., seed: Optional[Union[int, str]] = ..., workload:
    Optional[_Path] = ..., only: Optional[Literal['gemm', 'other']] = ..., batch: Optional[Union[int, str]] = ..., seq: Optional[Union[int, str]] = ..., heads:
    Optional[Union[int, str]] = ..., kv_heads: Optional[Union[int, str]] = ..., head_dim: Optional[Union[int, str]] = ..., ff: Optional[Union[int, str]] = ...,
    layers: Optional[Union[int, str]] = ..., gemm: Optional[Union[_Gemm, Sequence[_Gemm]]] = ..., algorithms: Optional[_Pairs] = ..., collectives:
    Optional[_Values] = ..., pass_: Optional[_Values] = ..., max_slice_count: Optional[_Values] = ..., block: Optional[_Values] = ..., prefetch:
    Optional[_Values] = ..., slice_copies: Optional[bool] = ..., top: Optional[_Values] = ..., exhaustive: Optional[bool] = ..., ignore_memory: Optional[bool] =
    ..., explain: Optional[bool] = ..., pareto: Optional[_Values] = ..., training: Optional[Union[_Path, Sequence[_Path]]] = ..., maxtext: Optional[_Path] =
    ..., batch_per_device: Optional[_Values] = ..., microbatches: Optional[_Values] = ..., pipeline: Optional[_Values] = ..., virtual_stages: Optional[_Values]
    = ..., fuse_steady_state: Optional[bool] = ..., remat: Optional[_Values] = ..., scan: Optional[bool] = ..., optimizer: Optional[Literal['adamw', 'sgd']] =
    ..., shard_optimizer_over_data: Optional[_Values] = ..., pad: Optional[bool] = ..., baseline: Optional[_Path] = ..., threads: Optional[_Values] = ...,
    record: Optional[_Path] = ..., output: Optional[_Path] = ...
) -> Union[Tuning, TrainingTuning]: ...
def calibrate(
    observations: Any = ..., /, *, progress: Progress = ..., from_: Optional[_Values] = ..., op: Optional[_Values] = ..., devices: Optional[_Values] = ...,
    axis_sizes: Optional[_Pairs] = ..., cores: Optional[_Values] = ..., core_peak: Optional[_Values] = ..., machine: Optional[Union[Machine, _Path]] = ..., set:
    Optional[_Pairs] = ..., slice: Optional[_Extents] = ..., strict_slice: Optional[bool] = ..., wrap: Optional[_Values] = ..., mesh: Optional[_Mesh] = ...,
    mesh_order: Optional[_Path] = ..., allow_split_axes: Optional[bool] = ..., contiguous_submeshes: Optional[bool] = ..., base: Optional[Union[Machine, _Path]]
    = ..., prior: Optional[_Pairs] = ..., hold: Optional[_Values] = ..., only: Optional[_Values] = ..., steps: Optional[_Path] = ..., dataset: Optional[_Values]
    = ..., plot: Optional[_Path] = ..., no_curves: Optional[bool] = ..., observations_only: Optional[bool] = ..., threads: Optional[_Values] = ..., record:
    Optional[_Path] = ..., output: Optional[_Path] = ...
) -> Any: ...
def validate(
    *datasets: str, progress: Progress = ..., dataset: Optional[Union[_Path, Sequence[_Path]]] = ..., bound: Optional[_Values] = ..., rows: Optional[bool] =
    ..., explain: Optional[bool] = ..., plot: Optional[_Path] = ..., threads: Optional[_Values] = ..., observations: Optional[Union[_Path, Sequence[_Path]]] =
    ..., from_: Optional[_Values] = ..., op: Optional[_Values] = ..., devices: Optional[_Values] = ..., axis_sizes: Optional[_Pairs] = ..., cores:
    Optional[_Values] = ..., core_peak: Optional[_Values] = ..., machine: Optional[Union[Machine, _Path]] = ..., set: Optional[_Pairs] = ..., slice:
    Optional[_Extents] = ..., strict_slice: Optional[bool] = ..., wrap: Optional[_Values] = ..., mesh: Optional[_Mesh] = ..., mesh_order: Optional[_Path] = ...,
    allow_split_axes: Optional[bool] = ..., contiguous_submeshes: Optional[bool] = ..., record: Optional[_Path] = ..., output: Optional[_Path] = ...
) -> Result: ...
def diagnose(
    observations: Any = ..., /, *, progress: Progress = ..., top: Optional[_Values] = ..., from_: Optional[_Values] = ..., op: Optional[_Values] = ..., devices:
    Optional[_Values] = ..., axis_sizes: Optional[_Pairs] = ..., cores: Optional[_Values] = ..., core_peak: Optional[_Values] = ..., machine:
    Optional[Union[Machine, _Path]] = ..., set: Optional[_Pairs] = ..., slice: Optional[_Extents] = ..., strict_slice: Optional[bool] = ..., wrap:
    Optional[_Values] = ..., mesh: Optional[_Mesh] = ..., mesh_order: Optional[_Path] = ..., allow_split_axes: Optional[bool] = ..., contiguous_submeshes:
    Optional[bool] = ..., topology: Optional[_Path] = ..., pods: Optional[Union[int, str]] = ..., fail: Optional[_Values] = ..., degrade: Optional[_Pairs] =
    ..., straggler: Optional[_Pairs] = ..., seed: Optional[Union[int, str]] = ..., output: Optional[_Path] = ...
) -> Result: ...
def diff(
    *, progress: Progress = ..., measured: Optional[_Path] = ..., plan: Optional[Union[Plan, _Path]] = ..., hlo: Optional[_Module] = ..., from_:
    Optional[_Values] = ..., steps: Optional[_Values] = ..., layers: Optional[_Values] = ..., devices: Optional[_Values] = ..., cores: Optional[_Values] = ...,
    machine: Optional[Union[Machine, _Path]] = ..., set: Optional[_Pairs] = ..., slice: Optional[_Extents] = ..., strict_slice: Optional[bool] = ..., wrap:
    Optional[_Values] = ..., mesh: Optional[_Mesh] = ..., mesh_order: Optional[_Path] = ..., allow_split_axes: Optional[bool] = ..., contiguous_submeshes:
    Optional[bool] = ..., engine: Optional[Literal['des', 'simgrid', 'analytic']] = ..., fold: Optional[Literal['auto', 'off']] = ..., calls:
    Optional[Literal['auto', 'inline']] = ..., force: Optional[bool] = ..., threads: Optional[_Values] = ..., record: Optional[_Path] = ..., output:
    Optional[_Path] = ...
) -> Result: ...
def report(
    records: Any = ..., output: Union[str, os.PathLike, None] = ..., /, *, progress: Progress = ..., record: Optional[Union[_Path, Sequence[_Path]]] = ...
) -> str: ...
def schedule(
    subject: _What = ..., /, *, progress: Progress = ..., machine: Optional[Union[Machine, _Path]] = ..., set: Optional[_Pairs] = ..., slice: Optional[_Extents]
    = ..., strict_slice: Optional[bool] = ..., wrap: Optional[_Values] = ..., mesh: Optional[_Mesh] = ..., mesh_order: Optional[_Path] = ..., allow_split_axes:
    Optional[bool] = ..., contiguous_submeshes: Optional[bool] = ..., devices: Optional[_Values] = ..., gemm: Optional[_Gemm] = ..., collective:
    Optional[Literal['all-gather', 'reduce-scatter', 'all-reduce', 'all-to-all', 'broadcast', 'reduce', 'permute']] = ..., schedule: Optional[Union[Schedule,
    _Path]] = ..., msccl: Optional[_Path] = ..., chakra: Optional[_Path] = ..., chakra_groups: Optional[_Path] = ..., chakra_cost: Optional[Literal['recorded',
    'flops']] = ..., plan: Optional[Union[Plan, _Path]] = ..., program: Optional[_Path] = ..., shape: Optional[Union[str, Mapping[str, _Extents]]] = ..., shard:
    Optional[Union[str, Mapping[str, _Spec]]] = ..., out: Optional[Union[str, Mapping[str, _Spec]]] = ..., choose: Optional[Literal['default', 'bytes', 'time']]
    = ..., chain: Optional[bool] = ..., minimise: Optional[Literal['bytes', 'collectives', 'time']] = ..., replicate: Optional[_Values] = ..., look_ahead:
    Optional[Union[int, str]] = ..., order: Optional[Literal['transposed', 'natural']] = ..., overlap: Optional[Union[int, str]] = ..., axis: Optional[_Values]
    = ..., bytes: Optional[_Values] = ..., dtype: Optional[Literal['f32', 'bf16', 'f8e4m3fn', 'f8e5m2', 's8', 'c64', 's32']] = ..., root: Optional[Union[int,
    str]] = ..., chunks: Optional[Union[int, str]] = ..., shift: Optional[Union[int, str]] = ..., pairs: Optional[_Path] = ..., pass_:
    Optional[Literal['forward', 'backward', 'both']] = ..., pad: Optional[bool] = ..., algorithm: Optional[_Pairs] = ..., dataflow: Optional[_Values] = ...,
    slice_count: Optional[_Pairs] = ..., block: Optional[Union[int, str]] = ..., prefetch: Optional[Union[int, str]] = ..., slice_copies: Optional[bool] = ...,
    wang_operand: Optional[Literal['x', 'w']] = ..., collectives: Optional[_Values] = ..., given: Optional[_Values] = ..., scenario: Optional[_Path] = ...,
    workload: Optional[_Path] = ..., only: Optional[Literal['gemm', 'other']] = ..., batch: Optional[Union[int, str]] = ..., seq: Optional[Union[int, str]] =
    ..., heads: Optional[Union[int, str]] = ..., kv_heads: Optional[Union[int, str]] = ..., head_dim: Optional[Union[int, str]] = ..., ff: Optional[Union[int,
    str]] = ..., layers: Optional[Union[int, str]] = ..., training: Optional[Union[_Path, Sequence[_Path]]] = ..., maxtext: Optional[_Path] = ...,
    batch_per_device: Optional[_Values] = ..., microbatches: Optional[Union[int, str]] = ..., pipeline: Optional[Literal['gpipe', '1f1b', 'eager-1f1b',
    'interleaved-1f1b', 'kimi-k2', 'zero-bubble', 'dual-pipe-v']] = ..., virtual_stages: Optional[Union[int, str]] = ..., fuse_steady_state: Optional[bool] =
    ..., remat: Optional[_Values] = ..., scan: Optional[bool] = ..., optimizer: Optional[Literal['adamw', 'sgd']] = ..., shard_optimizer_over_data:
    Optional[bool] = ..., steps: Optional[Union[int, str]] = ..., hlo: Optional[_Module] = ..., hlo_cost: Optional[Literal['model', 'estimated-cycles']] = ...,
    clock: Optional[_Values] = ..., hlo_schedule: Optional[Literal['text', 'overlap']] = ..., rewrite: Optional[Literal['reduce-scatter', 'bf16-reductions',
    'split', 'combine', 'prefetch']] = ..., combine_threshold: Optional[_Values] = ..., trip_count: Optional[_Pairs] = ..., branch: Optional[_Pairs] = ...,
    custom_call: Optional[_Pairs] = ..., ragged: Optional[Union[_Path, Sequence[_Path]]] = ..., lowered: Optional[bool] = ..., msccl_out: Optional[_Path] = ...,
    output: Optional[_Path] = ...
) -> Schedule: ...
def show_machine(
    machine: Union[Machine, str, None] = ..., *, set: Optional[_Pairs] = ..., slice: Optional[_Extents] = ..., strict_slice: Optional[bool] = ..., wrap:
    Optional[_Values] = ..., mesh: Optional[_Mesh] = ..., mesh_order: Optional[_Path] = ..., allow_split_axes: Optional[bool] = ..., contiguous_submeshes:
    Optional[bool] = ..., output: Optional[_Path] = ...
) -> Result: ...
def show_topology(
    machine: Union[Machine, str, None] = ..., *, set: Optional[_Pairs] = ..., slice: Optional[_Extents] = ..., strict_slice: Optional[bool] = ..., wrap:
    Optional[_Values] = ..., mesh: Optional[_Mesh] = ..., mesh_order: Optional[_Path] = ..., allow_split_axes: Optional[bool] = ..., contiguous_submeshes:
    Optional[bool] = ..., topology: Optional[_Path] = ..., pods: Optional[Union[int, str]] = ..., fail: Optional[_Values] = ..., degrade: Optional[_Pairs] =
    ..., straggler: Optional[_Pairs] = ..., seed: Optional[Union[int, str]] = ..., devices: Optional[bool] = ..., routes: Optional[Literal['json']] = ...,
    output: Optional[_Path] = ...
) -> Result: ...
def show_mesh(
    machine: Union[Machine, str, None] = ..., *, set: Optional[_Pairs] = ..., slice: Optional[_Extents] = ..., strict_slice: Optional[bool] = ..., wrap:
    Optional[_Values] = ..., mesh: Optional[_Mesh] = ..., mesh_order: Optional[_Path] = ..., allow_split_axes: Optional[bool] = ..., contiguous_submeshes:
    Optional[bool] = ..., devices: Optional[_Values] = ..., topology: Optional[_Path] = ..., pods: Optional[Union[int, str]] = ..., fail: Optional[_Values] =
    ..., degrade: Optional[_Pairs] = ..., straggler: Optional[_Pairs] = ..., seed: Optional[Union[int, str]] = ..., output: Optional[_Path] = ...
) -> Result: ...
def show_plan(
    plan: Union[Plan, str, None] = ..., *, machine: Optional[Union[Machine, _Path]] = ..., set: Optional[_Pairs] = ..., slice: Optional[_Extents] = ...,
    strict_slice: Optional[bool] = ..., wrap: Optional[_Values] = ..., mesh: Optional[_Mesh] = ..., mesh_order: Optional[_Path] = ..., allow_split_axes:
    Optional[bool] = ..., contiguous_submeshes: Optional[bool] = ..., topology: Optional[_Path] = ..., pods: Optional[Union[int, str]] = ..., fail:
    Optional[_Values] = ..., degrade: Optional[_Pairs] = ..., straggler: Optional[_Pairs] = ..., seed: Optional[Union[int, str]] = ..., pass_: Optional[_Values]
    = ..., jax: Optional[bool] = ..., axis_names: Optional[_Pairs] = ..., output: Optional[_Path] = ...
) -> Result: ...
def show_program(
    machine: Union[Machine, str, None] = ..., *, set: Optional[_Pairs] = ..., slice: Optional[_Extents] = ..., strict_slice: Optional[bool] = ..., wrap:
    Optional[_Values] = ..., mesh: Optional[_Mesh] = ..., mesh_order: Optional[_Path] = ..., allow_split_axes: Optional[bool] = ..., contiguous_submeshes:
    Optional[bool] = ..., devices: Optional[_Values] = ..., gemm: Optional[_Gemm] = ..., collective: Optional[Literal['all-gather', 'reduce-scatter',
    'all-reduce', 'all-to-all', 'broadcast', 'reduce', 'permute']] = ..., schedule: Optional[Union[Schedule, _Path]] = ..., msccl: Optional[_Path] = ...,
    chakra: Optional[_Path] = ..., chakra_groups: Optional[_Path] = ..., chakra_cost: Optional[Literal['recorded', 'flops']] = ..., plan: Optional[Union[Plan,
    _Path]] = ..., program: Optional[_Path] = ..., shape: Optional[Union[str, Mapping[str, _Extents]]] = ..., shard: Optional[Union[str, Mapping[str, _Spec]]] =
    ..., out: Optional[Union[str, Mapping[str, _Spec]]] = ..., choose: Optional[Literal['default', 'bytes', 'time']] = ..., chain: Optional[bool] = ...,
    minimise: Optional[Literal['bytes', 'collectives', 'time']] = ..., replicate: Optional[_Values] = ..., look_ahead: Optional[Union[int, str]] = ..., order:
    Optional[Literal['transposed', 'natural']] = ..., overlap: Optional[Union[int, str]] = ..., axis: Optional[_Values] = ..., bytes: Optional[_Values] = ...,
    dtype: Optional[Literal['f32', 'bf16', 'f8e4m3fn', 'f8e5m2', 's8', 'c64', 's32']] = ..., root: Optional[Union[int, str]] = ..., chunks: Optional[Union[int,
    str]] = ..., shift: Optional[Union[int, str]] = ..., pairs: Optional[_Path] = ..., pass_: Optional[Literal['forward', 'backward', 'both']] = ..., pad:
    Optional[bool] = ..., algorithm: Optional[_Pairs] = ..., dataflow: Optional[_Values] = ..., slice_count: Optional[_Pairs] = ..., block: Optional[Union[int,
    str]] = ..., prefetch: Optional[Union[int, str]] = ..., slice_copies: Optional[bool] = ..., wang_operand: Optional[Literal['x', 'w']] = ..., collectives:
    Optional[_Values] = ..., given: Optional[_Values] = ..., scenario: Optional[_Path] = ..., workload: Optional[_Path] = ..., only: Optional[Literal['gemm',
    'other']] = ..., batch: Optional[Union[int, str]] = ..., seq: Optional[Union[int, str]] = ..., heads: Optional[Union[int, str]] = ..., kv_heads:
    Optional[Union[int, str]] = ..., head_dim: Optional[Union[int, str]] = ..., ff: Optional[Union[int, str]] = ..., layers: Optional[Union[int, str]] = ...,
    training: Optional[Union[_Path, Sequence[_Path]]] = ..., maxtext: Optional[_Path] = ..., batch_per_device: Optional[_Values] = ..., microbatches:
    Optional[Union[int, str]] = ..., pipeline: Optional[Literal['gpipe', '1f1b', 'eager-1f1b', 'interleaved-1f1b', 'kimi-k2', 'zero-bubble', 'dual-pipe-v']] =
    ..., virtual_stages: Optional[Union[int, str]] = ..., fuse_steady_state: Optional[bool] = ..., remat: Optional[_Values] = ..., scan: Optional[bool] = ...,
    optimizer: Optional[Literal['adamw', 'sgd']] = ..., shard_optimizer_over_data: Optional[bool] = ..., steps: Optional[Union[int, str]] = ..., hlo:
    Optional[_Module] = ..., hlo_cost: Optional[Literal['model', 'estimated-cycles']] = ..., clock: Optional[_Values] = ..., hlo_schedule:
    Optional[Literal['text', 'overlap']] = ..., rewrite: Optional[Literal['reduce-scatter', 'bf16-reductions', 'split', 'combine', 'prefetch']] = ...,
    combine_threshold: Optional[_Values] = ..., trip_count: Optional[_Pairs] = ..., branch: Optional[_Pairs] = ..., custom_call: Optional[_Pairs] = ..., ragged:
    Optional[Union[_Path, Sequence[_Path]]] = ..., output: Optional[_Path] = ...
) -> Result: ...
def show_sharding(
    *, array: Optional[_Extents] = ..., mesh: Optional[_Mesh] = ..., spec: Optional[_Spec] = ..., hlo: Optional[_Values] = ..., devices: Optional[_Values] =
    ..., machine: Optional[Union[Machine, _Path]] = ..., slice: Optional[_Extents] = ..., platform: Optional[_Values] = ..., at: Optional[_Values] = ..., pad:
    Optional[bool] = ..., colour: Optional[Literal['auto', 'always', 'never']] = ..., output: Optional[_Path] = ...
) -> Result: ...
def show_training(
    training: Any = ..., *, maxtext: Optional[_Path] = ..., batch_per_device: Optional[_Values] = ..., microbatches: Optional[Union[int, str]] = ..., pipeline:
    Optional[Literal['gpipe', '1f1b', 'eager-1f1b', 'interleaved-1f1b', 'kimi-k2', 'zero-bubble', 'dual-pipe-v']] = ..., virtual_stages: Optional[Union[int,
    str]] = ..., fuse_steady_state: Optional[bool] = ..., remat: Optional[_Values] = ..., scan: Optional[bool] = ..., optimizer: Optional[Literal['adamw',
    'sgd']] = ..., shard_optimizer_over_data: Optional[bool] = ..., steps: Optional[Union[int, str]] = ..., seq: Optional[Union[int, str]] = ..., heads:
    Optional[Union[int, str]] = ..., kv_heads: Optional[Union[int, str]] = ..., head_dim: Optional[Union[int, str]] = ..., ff: Optional[Union[int, str]] = ...,
    layers: Optional[Union[int, str]] = ..., mesh: Optional[_Mesh] = ..., chips: Optional[_Values] = ..., batch: Optional[_Values] = ..., pad: Optional[bool] =
    ..., live_forwards: Optional[_Values] = ..., attention_flops: Optional[Literal['whole', 'causal']] = ..., output: Optional[_Path] = ...
) -> Result: ...
def show_pipeline(
    *, schedule: Optional[Literal['gpipe', '1f1b', 'eager-1f1b', 'interleaved-1f1b', 'kimi-k2', 'zero-bubble', 'dual-pipe-v']] = ..., stages: Optional[_Values]
    = ..., ranks: Optional[_Values] = ..., microbatches: Optional[_Values] = ..., fuse_steady_state: Optional[bool] = ..., full: Optional[bool] = ..., layers:
    Optional[_Values] = ..., chart: Optional[bool] = ..., output: Optional[_Path] = ...
) -> Result: ...
def show_hlo(
    hlo: Any = ..., *, tolerant: Optional[bool] = ..., trip_count: Optional[_Pairs] = ..., branch: Optional[_Pairs] = ..., custom_call: Optional[_Pairs] = ...,
    pods: Optional[_Values] = ..., machine: Optional[Union[Machine, _Path]] = ..., set: Optional[_Pairs] = ..., slice: Optional[_Extents] = ..., strict_slice:
    Optional[bool] = ..., wrap: Optional[_Values] = ..., mesh: Optional[_Mesh] = ..., mesh_order: Optional[_Path] = ..., allow_split_axes: Optional[bool] = ...,
    contiguous_submeshes: Optional[bool] = ..., output: Optional[_Path] = ...
) -> Result: ...

# Written by tools/python/scripts/make_stubs.py from the options of the command: run that instead of editing this.
import os
from typing import Any, Callable, Dict, Literal, Mapping, Optional, Sequence, Tuple, Union

from ._objects import Machine, Plan, Schedule
from ._results import Calibration, Check, Comparison, Result, Run, TrainingTuning, Tuning

Progress = Optional[Callable[[str], Any]]
_What = Union[Machine, Schedule, Plan, str, None]
_Path = Union[str, os.PathLike[str]]
_Value = Union[str, int, float]
_Values = Union[_Value, Sequence[_Value], Sequence[Sequence[_Value]]]  # one, several, several lists
_Pairs = Union[_Values, Mapping[str, Union[_Value, Sequence[_Value]]]]
_Mesh = Union[str, Mapping[str, int]]
_Extents = Union[str, Sequence[int]]
_Gemm = Union[str, Tuple[int, int, int], Tuple[int, int, int, str], Mapping[str, Union[int, str]]]
_Spec = Union[str, Sequence[Union[None, str, Sequence[str]]]]

def _call(command: Tuple[str, ...], keywords: Mapping[str, Any], progress: Progress = ..., format: str = ..., **how: Any) -> Tuple[int, str, str, Any]: ...
def machine(name_or_file: _Path, values: Optional[Mapping[str, _Value]] = ...) -> Machine: ...
def run(
    subject: _What = ..., /, *, progress: Progress = ..., machine: Optional[Union[Machine, _Path]] = ..., slice: Optional[_Extents] = ..., strict_slice:
    Optional[bool] = ..., wrap: Optional[_Values] = ..., mesh: Optional[_Mesh] = ..., mesh_order: Optional[_Values] = ..., allow_split_axes: Optional[bool] =
    ..., contiguous_submeshes: Optional[bool] = ..., set: Optional[_Pairs] = ..., devices: Optional[_Values] = ..., precision: Optional[_Values] = ...,
    topology: Optional[_Values] = ..., pods: Optional[_Values] = ..., fail: Optional[_Values] = ..., degrade: Optional[_Pairs] = ..., straggler:
    Optional[_Pairs] = ..., seed: Optional[_Values] = ..., gemm: Optional[_Gemm] = ..., collective: Optional[_Values] = ..., axis: Optional[_Values] = ...,
    bytes: Optional[_Values] = ..., scenario: Optional[_Path] = ..., plan: Optional[Union[Plan, _Path]] = ..., schedule: Optional[Union[Schedule, _Path]] = ...,
    msccl: Optional[_Path] = ..., chakra: Optional[_Path] = ..., chakra_groups: Optional[_Path] = ..., chakra_cost: Optional[_Values] = ..., algorithm:
    Optional[_Pairs] = ..., dataflow: Optional[_Values] = ..., slice_count: Optional[_Pairs] = ..., program: Optional[_Path] = ..., shape: Optional[Union[str,
    Mapping[str, _Extents]]] = ..., shard: Optional[Union[str, Mapping[str, _Spec]]] = ..., out: Optional[Union[str, Mapping[str, _Spec]]] = ..., choose:
    Optional[_Values] = ..., chain: Optional[bool] = ..., minimise: Optional[_Values] = ..., replicate: Optional[_Values] = ..., look_ahead: Optional[_Values] =
    ..., order: Optional[_Values] = ..., overlap: Optional[_Values] = ..., root: Optional[_Values] = ..., chunks: Optional[_Values] = ..., shift:
    Optional[_Values] = ..., pairs: Optional[_Path] = ..., dtype: Optional[_Values] = ..., pass_: Optional[_Values] = ..., wang_operand: Optional[_Values] =
    ..., block: Optional[_Values] = ..., prefetch: Optional[_Values] = ..., slice_copies: Optional[bool] = ..., collectives: Optional[_Values] = ..., given:
    Optional[_Values] = ..., pad: Optional[bool] = ..., workload: Optional[_Path] = ..., only: Optional[_Values] = ..., batch: Optional[_Values] = ..., seq:
    Optional[_Values] = ..., heads: Optional[_Values] = ..., kv_heads: Optional[_Values] = ..., head_dim: Optional[_Values] = ..., ff: Optional[_Values] = ...,
    layers: Optional[_Values] = ..., training: Optional[Union[_Path, Sequence[_Path]]] = ..., maxtext: Optional[_Path] = ..., batch_per_device:
    Optional[_Values] = ..., microbatches: Optional[_Values] = ..., pipeline: Optional[_Values] = ..., virtual_stages: Optional[_Values] = ...,
    fuse_steady_state: Optional[bool] = ..., remat: Optional[_Values] = ..., scan: Optional[bool] = ..., optimizer: Optional[_Values] = ..., steps:
    Optional[_Values] = ..., hlo: Optional[_Path] = ..., hlo_schedule: Optional[_Values] = ..., rewrite: Optional[_Values] = ..., trip_count: Optional[_Pairs] =
    ..., branch: Optional[_Pairs] = ..., custom_call: Optional[_Pairs] = ..., ragged: Optional[Union[_Path, Sequence[_Path]]] = ..., hlo_cost: Optional[_Values]
    = ..., clock: Optional[_Values] = ..., engine: Optional[_Values] = ..., fold: Optional[_Values] = ..., calls: Optional[_Values] = ..., force: Optional[bool]
    = ..., threads: Optional[_Values] = ..., explain: Optional[bool] = ..., strict: Optional[bool] = ..., per: Optional[_Values] = ..., trace: Optional[_Path] =
    ..., trace_devices: Optional[_Values] = ..., with_: Optional[_Path] = ..., with_step: Optional[_Values] = ..., record: Optional[_Path] = ..., chakra_out:
    Optional[_Path] = ..., chakra_collectives: Optional[_Values] = ..., output: Optional[_Path] = ...
) -> Run: ...
def check(
    subject: _What = ..., /, *, progress: Progress = ..., machine: Optional[Union[Machine, _Path]] = ..., slice: Optional[_Extents] = ..., strict_slice:
    Optional[bool] = ..., wrap: Optional[_Values] = ..., mesh: Optional[_Mesh] = ..., mesh_order: Optional[_Values] = ..., allow_split_axes: Optional[bool] =
    ..., contiguous_submeshes: Optional[bool] = ..., set: Optional[_Pairs] = ..., devices: Optional[_Values] = ..., gemm: Optional[_Gemm] = ..., collective:
    Optional[_Values] = ..., axis: Optional[_Values] = ..., bytes: Optional[_Values] = ..., scenario: Optional[_Path] = ..., plan: Optional[Union[Plan, _Path]]
    = ..., schedule: Optional[Union[Schedule, _Path]] = ..., msccl: Optional[_Path] = ..., chakra: Optional[_Path] = ..., chakra_groups: Optional[_Path] = ...,
    chakra_cost: Optional[_Values] = ..., algorithm: Optional[_Pairs] = ..., dataflow: Optional[_Values] = ..., slice_count: Optional[_Pairs] = ..., program:
    Optional[_Path] = ..., shape: Optional[Union[str, Mapping[str, _Extents]]] = ..., shard: Optional[Union[str, Mapping[str, _Spec]]] = ..., out:
    Optional[Union[str, Mapping[str, _Spec]]] = ..., choose: Optional[_Values] = ..., chain: Optional[bool] = ..., minimise: Optional[_Values] = ..., replicate:
    Optional[_Values] = ..., look_ahead: Optional[_Values] = ..., order: Optional[_Values] = ..., overlap: Optional[_Values] = ..., root: Optional[_Values] =
    ..., chunks: Optional[_Values] = ..., shift: Optional[_Values] = ..., pairs: Optional[_Path] = ..., dtype: Optional[_Values] = ..., pass_: Optional[_Values]
    = ..., wang_operand: Optional[_Values] = ..., block: Optional[_Values] = ..., prefetch: Optional[_Values] = ..., slice_copies: Optional[bool] = ...,
    collectives: Optional[_Values] = ..., given: Optional[_Values] = ..., pad: Optional[bool] = ..., workload: Optional[_Path] = ..., only: Optional[_Values] =
    ..., batch: Optional[_Values] = ..., seq: Optional[_Values] = ..., heads: Optional[_Values] = ..., kv_heads: Optional[_Values] = ..., head_dim:
    Optional[_Values] = ..., ff: Optional[_Values] = ..., layers: Optional[_Values] = ..., training: Optional[Union[_Path, Sequence[_Path]]] = ..., maxtext:
    Optional[_Path] = ..., batch_per_device: Optional[_Values] = ..., microbatches: Optional[_Values] = ..., pipeline: Optional[_Values] = ..., virtual_stages:
    Optional[_Values] = ..., fuse_steady_state: Optional[bool] = ..., remat: Optional[_Values] = ..., scan: Optional[bool] = ..., optimizer: Optional[_Values] =
    ..., steps: Optional[_Values] = ..., hlo: Optional[_Path] = ..., hlo_schedule: Optional[_Values] = ..., rewrite: Optional[_Values] = ..., trip_count:
    Optional[_Pairs] = ..., branch: Optional[_Pairs] = ..., custom_call: Optional[_Pairs] = ..., ragged: Optional[Union[_Path, Sequence[_Path]]] = ...,
    hlo_cost: Optional[_Values] = ..., clock: Optional[_Values] = ..., orders: Optional[_Values] = ..., seed: Optional[_Values] = ..., threads:
    Optional[_Values] = ..., data: Optional[Literal['random', 'arange', 'ones']] = ..., equals: Optional[_Values] = ..., force: Optional[bool] = ...,
    structure_only: Optional[bool] = ..., edges: Optional[bool] = ..., output: Optional[_Path] = ...
) -> Check: ...
def compare(
    subject: _What = ..., /, *, progress: Progress = ..., machine: Optional[Union[Union[Machine, _Path], Sequence[Union[Machine, _Path]]]] = ..., slice:
    Optional[Union[_Extents, Sequence[_Extents]]] = ..., strict_slice: Optional[bool] = ..., wrap: Optional[_Values] = ..., mesh: Optional[Union[_Mesh,
    Sequence[_Mesh]]] = ..., mesh_order: Optional[_Values] = ..., allow_split_axes: Optional[bool] = ..., contiguous_submeshes: Optional[bool] = ..., set:
    Optional[_Pairs] = ..., devices: Optional[_Values] = ..., precision: Optional[_Values] = ..., topology: Optional[_Values] = ..., pods: Optional[_Values] =
    ..., fail: Optional[_Values] = ..., degrade: Optional[_Pairs] = ..., straggler: Optional[_Pairs] = ..., seed: Optional[_Values] = ..., gemm: Optional[_Gemm]
    = ..., collective: Optional[_Values] = ..., axis: Optional[_Values] = ..., bytes: Optional[_Values] = ..., msccl: Optional[Union[_Path, Sequence[_Path]]] =
    ..., algorithm: Optional[_Pairs] = ..., algorithms: Optional[_Pairs] = ..., dataflow: Optional[_Values] = ..., slice_count: Optional[_Pairs] = ..., program:
    Optional[_Path] = ..., shape: Optional[Union[str, Mapping[str, _Extents]]] = ..., shard: Optional[Union[str, Mapping[str, _Spec]]] = ..., out:
    Optional[Union[str, Mapping[str, _Spec]]] = ..., choose: Optional[_Values] = ..., chain: Optional[bool] = ..., minimise: Optional[_Values] = ..., replicate:
    Optional[_Values] = ..., look_ahead: Optional[_Values] = ..., order: Optional[_Values] = ..., overlap: Optional[_Values] = ..., root: Optional[_Values] =
    ..., chunks: Optional[_Values] = ..., shift: Optional[_Values] = ..., pairs: Optional[_Path] = ..., dtype: Optional[_Values] = ..., pass_: Optional[_Values]
    = ..., wang_operand: Optional[_Values] = ..., block: Optional[_Values] = ..., prefetch: Optional[_Values] = ..., slice_copies: Optional[bool] = ...,
    collectives: Optional[_Values] = ..., given: Optional[_Values] = ..., pad: Optional[bool] = ..., workload: Optional[_Path] = ..., only: Optional[_Values] =
    ..., batch: Optional[_Values] = ..., seq: Optional[_Values] = ..., heads: Optional[_Values] = ..., kv_heads: Optional[_Values] = ..., head_dim:
    Optional[_Values] = ..., ff: Optional[_Values] = ..., layers: Optional[_Values] = ..., training: Optional[Union[_Path, Sequence[_Path]]] = ..., maxtext:
    Optional[_Path] = ..., batch_per_device: Optional[_Values] = ..., microbatches: Optional[_Values] = ..., pipeline: Optional[_Values] = ..., virtual_stages:
    Optional[_Values] = ..., fuse_steady_state: Optional[bool] = ..., remat: Optional[_Values] = ..., scan: Optional[bool] = ..., optimizer: Optional[_Values] =
    ..., steps: Optional[_Values] = ..., hlo: Optional[_Path] = ..., hlo_schedule: Optional[_Values] = ..., rewrite: Optional[_Values] = ..., trip_count:
    Optional[_Pairs] = ..., branch: Optional[_Pairs] = ..., custom_call: Optional[_Pairs] = ..., ragged: Optional[Union[_Path, Sequence[_Path]]] = ...,
    hlo_cost: Optional[_Values] = ..., clock: Optional[_Values] = ..., vary: Optional[_Pairs] = ..., equal: Optional[_Values] = ..., crossover: Optional[_Pairs]
    = ..., top: Optional[_Values] = ..., engine: Optional[_Values] = ..., fold: Optional[_Values] = ..., calls: Optional[_Values] = ..., force: Optional[bool] =
    ..., threads: Optional[_Values] = ..., record: Optional[_Path] = ..., output: Optional[_Path] = ...
) -> Union[Comparison, Result]: ...
def tune(
    subject: _What = ..., /, *, progress: Progress = ..., client: Any = ..., chips: Optional[_Values] = ..., slices: Optional[_Values] = ..., machine:
    Optional[Union[Machine, _Path]] = ..., slice: Optional[_Extents] = ..., strict_slice: Optional[bool] = ..., wrap: Optional[_Values] = ..., mesh:
    Optional[_Mesh] = ..., mesh_order: Optional[_Values] = ..., allow_split_axes: Optional[bool] = ..., contiguous_submeshes: Optional[bool] = ..., set:
    Optional[_Pairs] = ..., precision: Optional[_Values] = ..., topology: Optional[_Values] = ..., pods: Optional[_Values] = ..., fail: Optional[_Values] = ...,
    degrade: Optional[_Pairs] = ..., straggler: Optional[_Pairs] = ..., seed: Optional[_Values] = ..., workload: Optional[_Path] = ..., only: Optional[_Values]
    = ..., batch: Optional[_Values] = ..., seq: Optional[_Values] = ..., heads: Optional[_Values] = ..., kv_heads: Optional[_Values] = ..., head_dim:
    Optional[_Values] = ..., ff: Optional[_Values] = ..., layers: Optional[_Values] = ..., gemm: Optional[Union[_Gemm, Sequence[_Gemm]]] = ..., algorithms:
    Optional[_Pairs] = ..., collectives: Optional[_Values] = ..., pass_: Optional[_Values] = ..., max_slice_count: Optional[_Values] = ..., block:
    Optional[_Values] = ..., prefetch: Optional[_Values] = ..., slice_copies: Optional[bool] = ..., top: Optional[_Values] = ..., exhaustive: Optional[bool] =
    ..., ignore_memory: Optional[bool] = ..., explain: Optional[bool] = ..., pareto: Optional[_Values] = ..., training: Optional[Union[_Path, Sequence[_Path]]]
    = ..., maxtext: Optional[_Path] = ..., batch_per_device: Optional[_Values] = ..., microbatches: Optional[_Values] = ..., pipeline: Optional[_Values] = ...,
    virtual_stages: Optional[_Values] = ..., fuse_steady_state: Optional[bool] = ..., remat: Optional[_Values] = ..., scan: Optional[bool] = ..., optimizer:
    Optional[_Values] = ..., pad: Optional[bool] = ..., baseline: Optional[_Values] = ..., threads: Optional[_Values] = ..., record: Optional[_Path] = ...,
    output: Optional[_Path] = ...
) -> Union[Tuning, TrainingTuning]: ...
def calibrate(
    observations: Any = ..., /, *, progress: Progress = ..., from_: Optional[_Values] = ..., op: Optional[_Values] = ..., devices: Optional[_Values] = ...,
    axis_sizes: Optional[_Pairs] = ..., cores: Optional[_Values] = ..., core_peak: Optional[_Values] = ..., machine: Optional[Union[Machine, _Path]] = ...,
    slice: Optional[_Extents] = ..., strict_slice: Optional[bool] = ..., wrap: Optional[_Values] = ..., mesh: Optional[_Mesh] = ..., mesh_order:
    Optional[_Values] = ..., allow_split_axes: Optional[bool] = ..., contiguous_submeshes: Optional[bool] = ..., set: Optional[_Pairs] = ..., base:
    Optional[Union[Machine, _Path]] = ..., prior: Optional[_Pairs] = ..., hold: Optional[_Values] = ..., dataset: Optional[_Values] = ..., plot: Optional[_Path]
    = ..., no_curves: Optional[bool] = ..., observations_only: Optional[bool] = ..., output: Optional[_Path] = ...
) -> Any: ...
def validate(
    *datasets: str, progress: Progress = ..., dataset: Optional[_Values] = ..., bound: Optional[_Values] = ..., rows: Optional[bool] = ..., explain:
    Optional[bool] = ..., plot: Optional[_Path] = ..., threads: Optional[_Values] = ..., observations: Optional[Union[_Path, Sequence[_Path]]] = ..., from_:
    Optional[_Values] = ..., op: Optional[_Values] = ..., devices: Optional[_Values] = ..., axis_sizes: Optional[_Pairs] = ..., cores: Optional[_Values] = ...,
    core_peak: Optional[_Values] = ..., machine: Optional[Union[Machine, _Path]] = ..., slice: Optional[_Extents] = ..., strict_slice: Optional[bool] = ...,
    wrap: Optional[_Values] = ..., mesh: Optional[_Mesh] = ..., mesh_order: Optional[_Values] = ..., allow_split_axes: Optional[bool] = ...,
    contiguous_submeshes: Optional[bool] = ..., set: Optional[_Pairs] = ..., record: Optional[_Path] = ..., output: Optional[_Path] = ...
) -> Result: ...
def diff(
    *, progress: Progress = ..., measured: Optional[_Path] = ..., plan: Optional[_Values] = ..., from_: Optional[_Values] = ..., steps: Optional[_Values] = ...,
    layers: Optional[_Values] = ..., devices: Optional[_Values] = ..., cores: Optional[_Values] = ..., machine: Optional[Union[Machine, _Path]] = ..., slice:
    Optional[_Extents] = ..., strict_slice: Optional[bool] = ..., wrap: Optional[_Values] = ..., mesh: Optional[_Mesh] = ..., mesh_order: Optional[_Values] =
    ..., allow_split_axes: Optional[bool] = ..., contiguous_submeshes: Optional[bool] = ..., set: Optional[_Pairs] = ..., engine: Optional[_Values] = ..., fold:
    Optional[_Values] = ..., calls: Optional[_Values] = ..., force: Optional[bool] = ..., threads: Optional[_Values] = ..., output: Optional[_Path] = ...
) -> Result: ...
def report(
    records: Any = ..., output: Union[str, os.PathLike, None] = ..., /, *, progress: Progress = ..., record: Optional[_Values] = ...
) -> str: ...
def schedule(
    subject: _What = ..., /, *, progress: Progress = ..., machine: Optional[Union[Machine, _Path]] = ..., slice: Optional[_Extents] = ..., strict_slice:
    Optional[bool] = ..., wrap: Optional[_Values] = ..., mesh: Optional[_Mesh] = ..., mesh_order: Optional[_Values] = ..., allow_split_axes: Optional[bool] =
    ..., contiguous_submeshes: Optional[bool] = ..., set: Optional[_Pairs] = ..., devices: Optional[_Values] = ..., gemm: Optional[_Gemm] = ..., collective:
    Optional[_Values] = ..., axis: Optional[_Values] = ..., bytes: Optional[_Values] = ..., scenario: Optional[_Path] = ..., plan: Optional[Union[Plan, _Path]]
    = ..., schedule: Optional[Union[Schedule, _Path]] = ..., msccl: Optional[_Path] = ..., chakra: Optional[_Path] = ..., chakra_groups: Optional[_Path] = ...,
    chakra_cost: Optional[_Values] = ..., algorithm: Optional[_Pairs] = ..., dataflow: Optional[_Values] = ..., slice_count: Optional[_Pairs] = ..., program:
    Optional[_Path] = ..., shape: Optional[Union[str, Mapping[str, _Extents]]] = ..., shard: Optional[Union[str, Mapping[str, _Spec]]] = ..., out:
    Optional[Union[str, Mapping[str, _Spec]]] = ..., choose: Optional[_Values] = ..., chain: Optional[bool] = ..., minimise: Optional[_Values] = ..., replicate:
    Optional[_Values] = ..., look_ahead: Optional[_Values] = ..., order: Optional[_Values] = ..., overlap: Optional[_Values] = ..., root: Optional[_Values] =
    ..., chunks: Optional[_Values] = ..., shift: Optional[_Values] = ..., pairs: Optional[_Path] = ..., dtype: Optional[_Values] = ..., pass_: Optional[_Values]
    = ..., wang_operand: Optional[_Values] = ..., block: Optional[_Values] = ..., prefetch: Optional[_Values] = ..., slice_copies: Optional[bool] = ...,
    collectives: Optional[_Values] = ..., given: Optional[_Values] = ..., pad: Optional[bool] = ..., workload: Optional[_Path] = ..., only: Optional[_Values] =
    ..., batch: Optional[_Values] = ..., seq: Optional[_Values] = ..., heads: Optional[_Values] = ..., kv_heads: Optional[_Values] = ..., head_dim:
    Optional[_Values] = ..., ff: Optional[_Values] = ..., layers: Optional[_Values] = ..., training: Optional[Union[_Path, Sequence[_Path]]] = ..., maxtext:
    Optional[_Path] = ..., batch_per_device: Optional[_Values] = ..., microbatches: Optional[_Values] = ..., pipeline: Optional[_Values] = ..., virtual_stages:
    Optional[_Values] = ..., fuse_steady_state: Optional[bool] = ..., remat: Optional[_Values] = ..., scan: Optional[bool] = ..., optimizer: Optional[_Values] =
    ..., steps: Optional[_Values] = ..., hlo: Optional[_Path] = ..., hlo_schedule: Optional[_Values] = ..., rewrite: Optional[_Values] = ..., trip_count:
    Optional[_Pairs] = ..., branch: Optional[_Pairs] = ..., custom_call: Optional[_Pairs] = ..., ragged: Optional[Union[_Path, Sequence[_Path]]] = ...,
    hlo_cost: Optional[_Values] = ..., clock: Optional[_Values] = ..., lowered: Optional[bool] = ..., msccl_out: Optional[_Path] = ..., output: Optional[_Path]
    = ...
) -> Schedule: ...
def show_machine(
    machine: Union[Machine, str, None] = ..., *, slice: Optional[_Extents] = ..., strict_slice: Optional[bool] = ..., wrap: Optional[_Values] = ..., mesh:
    Optional[_Mesh] = ..., mesh_order: Optional[_Values] = ..., allow_split_axes: Optional[bool] = ..., contiguous_submeshes: Optional[bool] = ..., set:
    Optional[_Pairs] = ..., output: Optional[_Path] = ...
) -> Result: ...
def show_topology(
    machine: Union[Machine, str, None] = ..., *, slice: Optional[_Extents] = ..., strict_slice: Optional[bool] = ..., wrap: Optional[_Values] = ..., mesh:
    Optional[_Mesh] = ..., mesh_order: Optional[_Values] = ..., allow_split_axes: Optional[bool] = ..., contiguous_submeshes: Optional[bool] = ..., set:
    Optional[_Pairs] = ..., topology: Optional[_Values] = ..., pods: Optional[_Values] = ..., fail: Optional[_Values] = ..., degrade: Optional[_Pairs] = ...,
    straggler: Optional[_Pairs] = ..., seed: Optional[_Values] = ..., devices: Optional[bool] = ..., output: Optional[_Path] = ...
) -> Result: ...
def show_mesh(
    machine: Union[Machine, str, None] = ..., *, slice: Optional[_Extents] = ..., strict_slice: Optional[bool] = ..., wrap: Optional[_Values] = ..., mesh:
    Optional[_Mesh] = ..., mesh_order: Optional[_Values] = ..., allow_split_axes: Optional[bool] = ..., contiguous_submeshes: Optional[bool] = ..., set:
    Optional[_Pairs] = ..., devices: Optional[_Values] = ..., topology: Optional[_Values] = ..., pods: Optional[_Values] = ..., fail: Optional[_Values] = ...,
    degrade: Optional[_Pairs] = ..., straggler: Optional[_Pairs] = ..., seed: Optional[_Values] = ..., output: Optional[_Path] = ...
) -> Result: ...
def show_plan(
    plan: Union[Plan, str, None] = ..., *, machine: Optional[Union[Machine, _Path]] = ..., slice: Optional[_Extents] = ..., strict_slice: Optional[bool] = ...,
    wrap: Optional[_Values] = ..., mesh: Optional[_Mesh] = ..., mesh_order: Optional[_Values] = ..., allow_split_axes: Optional[bool] = ...,
    contiguous_submeshes: Optional[bool] = ..., set: Optional[_Pairs] = ..., topology: Optional[_Values] = ..., pods: Optional[_Values] = ..., fail:
    Optional[_Values] = ..., degrade: Optional[_Pairs] = ..., straggler: Optional[_Pairs] = ..., seed: Optional[_Values] = ..., pass_: Optional[_Values] = ...,
    jax: Optional[bool] = ..., axis_names: Optional[_Pairs] = ..., output: Optional[_Path] = ...
) -> Result: ...
def show_program(
    machine: Union[Machine, str, None] = ..., *, slice: Optional[_Extents] = ..., strict_slice: Optional[bool] = ..., wrap: Optional[_Values] = ..., mesh:
    Optional[_Mesh] = ..., mesh_order: Optional[_Values] = ..., allow_split_axes: Optional[bool] = ..., contiguous_submeshes: Optional[bool] = ..., set:
    Optional[_Pairs] = ..., devices: Optional[_Values] = ..., gemm: Optional[_Gemm] = ..., collective: Optional[_Values] = ..., axis: Optional[_Values] = ...,
    bytes: Optional[_Values] = ..., scenario: Optional[_Path] = ..., plan: Optional[Union[Plan, _Path]] = ..., schedule: Optional[Union[Schedule, _Path]] = ...,
    msccl: Optional[_Path] = ..., chakra: Optional[_Path] = ..., chakra_groups: Optional[_Path] = ..., chakra_cost: Optional[_Values] = ..., algorithm:
    Optional[_Pairs] = ..., dataflow: Optional[_Values] = ..., slice_count: Optional[_Pairs] = ..., program: Optional[_Path] = ..., shape: Optional[Union[str,
    Mapping[str, _Extents]]] = ..., shard: Optional[Union[str, Mapping[str, _Spec]]] = ..., out: Optional[Union[str, Mapping[str, _Spec]]] = ..., choose:
    Optional[_Values] = ..., chain: Optional[bool] = ..., minimise: Optional[_Values] = ..., replicate: Optional[_Values] = ..., look_ahead: Optional[_Values] =
    ..., order: Optional[_Values] = ..., overlap: Optional[_Values] = ..., root: Optional[_Values] = ..., chunks: Optional[_Values] = ..., shift:
    Optional[_Values] = ..., pairs: Optional[_Path] = ..., dtype: Optional[_Values] = ..., pass_: Optional[_Values] = ..., wang_operand: Optional[_Values] =
    ..., block: Optional[_Values] = ..., prefetch: Optional[_Values] = ..., slice_copies: Optional[bool] = ..., collectives: Optional[_Values] = ..., given:
    Optional[_Values] = ..., pad: Optional[bool] = ..., workload: Optional[_Path] = ..., only: Optional[_Values] = ..., batch: Optional[_Values] = ..., seq:
    Optional[_Values] = ..., heads: Optional[_Values] = ..., kv_heads: Optional[_Values] = ..., head_dim: Optional[_Values] = ..., ff: Optional[_Values] = ...,
    layers: Optional[_Values] = ..., training: Optional[Union[_Path, Sequence[_Path]]] = ..., maxtext: Optional[_Path] = ..., batch_per_device:
    Optional[_Values] = ..., microbatches: Optional[_Values] = ..., pipeline: Optional[_Values] = ..., virtual_stages: Optional[_Values] = ...,
    fuse_steady_state: Optional[bool] = ..., remat: Optional[_Values] = ..., scan: Optional[bool] = ..., optimizer: Optional[_Values] = ..., steps:
    Optional[_Values] = ..., hlo: Optional[_Path] = ..., hlo_schedule: Optional[_Values] = ..., rewrite: Optional[_Values] = ..., trip_count: Optional[_Pairs] =
    ..., branch: Optional[_Pairs] = ..., custom_call: Optional[_Pairs] = ..., ragged: Optional[Union[_Path, Sequence[_Path]]] = ..., hlo_cost: Optional[_Values]
    = ..., clock: Optional[_Values] = ..., output: Optional[_Path] = ...
) -> Result: ...
def show_sharding(
    *, array: Optional[_Extents] = ..., mesh: Optional[_Mesh] = ..., spec: Optional[_Spec] = ..., hlo: Optional[_Values] = ..., devices: Optional[_Values] =
    ..., machine: Optional[Union[Machine, _Path]] = ..., slice: Optional[_Extents] = ..., platform: Optional[_Values] = ..., at: Optional[_Values] = ..., pad:
    Optional[bool] = ..., colour: Optional[Literal['auto', 'always', 'never']] = ..., output: Optional[_Path] = ...
) -> Result: ...
def show_training(
    training: Any = ..., *, maxtext: Optional[_Path] = ..., batch_per_device: Optional[_Values] = ..., microbatches: Optional[_Values] = ..., pipeline:
    Optional[_Values] = ..., virtual_stages: Optional[_Values] = ..., fuse_steady_state: Optional[bool] = ..., remat: Optional[_Values] = ..., scan:
    Optional[bool] = ..., optimizer: Optional[_Values] = ..., steps: Optional[_Values] = ..., seq: Optional[_Values] = ..., heads: Optional[_Values] = ...,
    kv_heads: Optional[_Values] = ..., head_dim: Optional[_Values] = ..., ff: Optional[_Values] = ..., layers: Optional[_Values] = ..., mesh: Optional[_Mesh] =
    ..., chips: Optional[_Values] = ..., batch: Optional[_Values] = ..., pad: Optional[bool] = ..., live_forwards: Optional[_Values] = ..., attention_flops:
    Optional[Literal['whole', 'causal']] = ..., output: Optional[_Path] = ...
) -> Result: ...
def show_pipeline(
    *, schedule: Optional[_Values] = ..., stages: Optional[_Values] = ..., ranks: Optional[_Values] = ..., microbatches: Optional[_Values] = ...,
    fuse_steady_state: Optional[bool] = ..., full: Optional[bool] = ..., layers: Optional[_Values] = ..., chart: Optional[bool] = ..., output: Optional[_Path] =
    ...
) -> Result: ...
def show_hlo(
    hlo: Union[str, os.PathLike, None] = ..., *, tolerant: Optional[bool] = ..., trip_count: Optional[_Pairs] = ..., branch: Optional[_Pairs] = ...,
    custom_call: Optional[_Pairs] = ..., pods: Optional[_Values] = ..., machine: Optional[Union[Machine, _Path]] = ..., slice: Optional[_Extents] = ...,
    strict_slice: Optional[bool] = ..., wrap: Optional[_Values] = ..., mesh: Optional[_Mesh] = ..., mesh_order: Optional[_Values] = ..., allow_split_axes:
    Optional[bool] = ..., contiguous_submeshes: Optional[bool] = ..., set: Optional[_Pairs] = ..., output: Optional[_Path] = ...
) -> Result: ...

// Turns fields (fields.hpp) into values: a system, a problem, options of a run.
#pragma once

#include <array>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "workloads/msccl/msccl_algorithm.hpp"
#include "workloads/scenario/fields.hpp"
#include "workloads/scenario/plan_config.hpp"
#include "workloads/scenario/problem.hpp"
#include "workloads/scenario/run_options.hpp"
#include "workloads/scenario/vary.hpp"
#include "workloads/training/maxtext.hpp"

namespace podsim {

// ---- Where ------------------------------------------------------------------------------------------------------------------------------

/// A shipped machine or a textproto file, with other values: then hypothetical. Errors: no such machine; what is wrong with the file; a path or value
/// that it does not take.
Expected<Machine> load_machine(const std::string& name_or_file, const std::vector<Override>& overrides = {});

/// `machine` with `set`. Errors: no machine is named.
Expected<Machine> read_machine(const Fields& fields);
/// Machine, slice, mesh, order, devices, topology; without faults, since names of cables depend on the topology. Without a mesh: the mesh of `schedule`.
/// `precision` sets the machine's passes of a float32 product and leaves its trust as it is: it is a choice of the program, as jax.lax.Precision.
Expected<SystemSpec> read_system_spec(const Fields& fields);
/// With this machine instead of the fields' one.
Expected<SystemSpec> read_system_spec(const Fields& fields, Machine machine);
/// The system with its faults. Errors carry the place of the wrong field.
Expected<System> read_system(const Fields& fields);
Expected<System> read_system(const Fields& fields, Machine machine);

/// `fail`, `degrade`, `straggler`, `seed`, on the system's topology.
Expected<Faults> read_faults(const Fields& fields, const System& system);

/// "row=32,col=8"
Expected<MeshSizes> parse_mesh(const std::string& text, const SourceLocation& where);
/// The same as a mesh alone, without chips under it.
Expected<Mesh> parse_axes(const std::string& text, const SourceLocation& where);
/// "0,2,4,6": devices below `count`, each once. Errors, of the place in the text: no number, another device, a device again.
Expected<std::vector<int>> parse_devices(const std::string& text, std::int64_t count, const SourceLocation& where);
/// "0.0-0.1=0.5"
Expected<SlowCable> parse_slow_cable(const Topology& topology, const std::string& text, const SourceLocation& where);
/// "3.2=0.8", "random:1%=0.8"
Expected<SlowDevices> parse_slow_devices(const Topology& topology, const std::string& text, const SourceLocation& where);

/// If `plan` is given, completes the system's fields from the plan's file. Without a plan: the fields themselves.
Expected<Fields> with_plan(Fields fields);
/// If `hlo` is given, reads the module, which `known` of the result then has, and completes the system's fields:
///
///   from NAME.json beside the module (compiled_for.hpp)   machine, slice, pods, mesh, and the order of the devices
///   from the module, where the machine leaves one reading  mesh: the axes over which its collectives run; slice: the one that the machine offers with as many
///                                                          devices (of nodes of GPUs the fewest nodes; of machines of any shape the sizes of the mesh)
///
/// What is given stays, and what neither says `otherwise` does, with or without `hlo`. KnownModule::assumed tells what was completed, and where the JSON differs from
/// what is given. Errors: those of reading; several slices, or none, that the machine offers.
Expected<Fields> with_module(Fields fields, const Fields& otherwise = {});
/// The same of a module that has been read, but that the slice may stay open: for looking at the module alone.
Expected<Fields> with_axes_of(std::shared_ptr<const HloModule> module, Fields fields, const Fields& otherwise);

// ---- What -------------------------------------------------------------------------------------------------------------------------------

/// `gemm` without algorithm, dataflow and slice count.
Expected<GemmSpec> read_gemm(const Fields& fields, const Machine& machine, DType default_dtype);
Expected<CollectiveSpec> read_collective(const Fields& fields, const System& system, DType default_dtype);
/// A sharded program. Errors: those of read_program(); fields of another way to choose. `algorithms`: whether `algorithm` is of its transforms and linear
/// systems. These are of f32 where nothing says otherwise.
Expected<ProgramSpec> read_sharded(const Fields& fields, const System& system, DType default_dtype, bool algorithms = true);
/// A training step on the system's mesh. With f32 as the default dtype it is for numeric runs: all dtypes are f32, and it claims what it computes.
/// Errors: a mesh with other axes, or another number of slices than the system; those of read_training_step().
Expected<TrainingSpec> read_training(const Fields& fields, const System& system, DType default_dtype);
/// The same without a system: a model with the fields of a step, or with `maxtext` a configuration, whose keys `training` has. Errors: fields that MaxText
/// has keys for; unknown names; those of find_training_model() and read_maxtext().
Expected<TrainingStep> read_training_step(const Fields& fields, const TrainingMesh& mesh, const MaxTextSystem& system);
/// The mesh where none is given: fsdp over all devices of a slice, or what MaxText's keys say.
Expected<TrainingMesh> mesh_of_training(const Fields& fields, const MaxTextSystem& system);
/// What fields may change of a model or a block.
struct ModelExtents {
  std::int64_t &sequence, &heads, &kv_heads, &head_dim, &width, &ff, &layers;
};
/// Sets those given: seq, heads, kv_heads, head_dim, ff, layers. A width of heads * head_dim stays that; without `ff` the MLP grows as these do. Errors: numbers
/// outside 1 to 2^30; heads that are not a multiple of kv_heads; an MLP that grows to no whole number.
Status set_extents(const Fields& fields, const ModelExtents& model);
/// Of `devices` devices.
Expected<Workload> read_workload(const Fields& fields, int devices);
Expected<PlanChoices> read_plan_choices(const Fields& fields, const Machine& machine, const Workload& workload);
Expected<PartOptions> read_part_options(const Fields& fields, const Machine& machine);
Expected<Pass> read_pass(const Fields& fields);
Expected<bool> on_off(const Fields& fields, std::string_view name);

/// How the transforms and linear systems of a program are computed: algorithm ("fft=pencil,lu=block", if `algorithms`), block, look_ahead, order, overlap,
/// slice_copies.
Expected<KernelChoice> read_kernels(const Fields& fields, const Machine& machine, bool algorithms = true);
/// Errors: a field of a function that the program does not have.
Status kernels_belong(const Fields& fields, const ShardedProgram& program);
/// Whether a program has transforms or linear systems.
bool has_kernels(const ShardedProgram& program);
/// A way to compute these in a comparison.
struct ComparedKernels {
  std::string name;  // "pencil", "fft=pencil,lu=naive"
  KernelChoice kernels;
};
/// A bare name, as naive, is a way of its own, for every function that has it; of names such as fft=pencil, fft=slab, lu=naive every combination is. Functions
/// that are not named are computed as in `run`. all: every combination. No names: every algorithm of a single function; of several functions what `run` does
/// and naive. Errors: unknown names; a function that the program does not have.
Expected<std::vector<ComparedKernels>> compared_kernels(const std::vector<FieldText>& names, const ShardedProgram& program);

/// What decides the loops, branches and custom-calls of a module, and how much its ragged-all-to-alls send: trip_count, branch, custom_call, ragged.
Expected<HloCountOptions> read_hlo_counts(const Fields& fields);
/// The statements of `equals` with `shape`, `shard` and `out`, in f32; nullopt: there are none.
std::optional<ProgramText> read_equals(const Fields& fields);
/// What fields say of a module that is not read yet. Errors: unknown words; fields that need others.
Expected<HloSpec> read_hlo_options(const Fields& fields);
/// The module of `hlo`, with read_hlo_options(). Errors: those of read_hlo_file() and check_partitioned(); an order of a module that has its own.
Expected<HloSpec> read_hlo_problem(const Fields& fields);

/// "m=512,n=1024,k=256[,dtype=bf16]", or the three extents alone: "512,1024,256". Errors: missing, repeated, unknown or non-positive entries.
Expected<GemmProblem> parse_gemm(const std::string& text, DType default_dtype, const SourceLocation& where);
Expected<DType> parse_dtype(const std::string& text, const SourceLocation& where);
Expected<DType> parse_product_dtype(const std::string& text, const SourceLocation& where);
/// "X,W": operands of a GEMM.
Expected<std::vector<std::string>> parse_given(const std::string& text, const SourceLocation& where);
/// "940MHz": in Hz.
Expected<double> parse_clock(const std::string& text, const SourceLocation& where);
/// "bytes"
Expected<Choose> parse_choose(const std::string& text, const SourceLocation& where);
Expected<Minimise> parse_minimise(const std::string& text, const SourceLocation& where);
/// "all-gather"; also all_gather, allgather, AllGather. Errors: no such collective (names the near ones).
Expected<CollectiveKind> parse_collective_kind(const std::string& text, const SourceLocation& where);
/// "16MiB", a bare number of bytes, or as nccl-tests has sizes: "16M" is 16MiB.
Expected<Bytes> parse_input_bytes(const std::string& text, const SourceLocation& where);
/// The sizes of a comparison, as texts: one each, or "8..128M", each twice the one before, or "8..128M:4", four times, as nccl-tests has them (-b 8 -e 128M -f 4).
/// Errors: those of parse_input_bytes(); a range from 0 or downwards; a factor that is none from 2 to 1024.
Expected<std::vector<FieldText>> input_sizes(const Fields& fields);
Expected<Dataflow> parse_dataflow(const std::string& text, const SourceLocation& where);
/// Errors: neither empty nor `auto` nor a name of collective_algorithms().
Expected<CollectivePolicy> parse_policy(const std::string& text, const SourceLocation& where);
/// Lines `from to`, positions along the axes; # begins a comment. Errors (with line and column): anything else, a position outside
/// [0, devices), one that sends or receives twice, no pair at all.
Expected<std::vector<Collective::Pair>> parse_pairs(const std::string& text, const std::string& file, std::int64_t devices);
/// The schedule in a file. Errors: it cannot be read, or what is wrong with it.
Expected<Schedule> load_schedule(const std::string& path);
/// `msccl` (or the file `path`) with `bytes` on each device and `dtype`, on the whole mesh. Errors: no bytes; what is wrong with the file; what does not suit the mesh.
Expected<ScheduleSpec> read_msccl_problem(const Fields& fields, const std::string& path, const System& system, DType default_dtype);
/// The MSCCL algorithm in a file. Errors: as load_schedule().
Expected<MscclAlgorithm> load_msccl(const std::string& path);
/// The plan in a file. Errors: as load_schedule(); its collectives are lowered by nothing that is known.
Expected<SavedPlan> load_plan(const std::string& path);

// ---- How --------------------------------------------------------------------------------------------------------------------------------

/// engine, fold, force.
Expected<RunOptions> read_run_options(const Fields& fields);

}  // namespace podsim

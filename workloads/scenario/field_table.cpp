// Every field of a scenario, each in one row: the options of the verbs, their help, manual pages and completion, the readers of files and of sweeps, and Python's keywords follow from it.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <limits>

#include "algorithms/collectives/collectives.hpp"
#include "algorithms/gemm/gemm.hpp"
#include "algorithms/pipeline/pipeline.hpp"
#include "sim/base/text.hpp"
#include "sim/base/units.hpp"
#include "sim/engine/table/engines.hpp"
#include "topologies/machines.hpp"
#include "workloads/scenario/read_scenario.hpp"
#include "workloads/training/model.hpp"
#include "workloads/training/step.hpp"
#include "workloads/transformer.hpp"

namespace podsim {

namespace {

// ---- Names --------------------------------------------------------------------------------------------------------------------------------

template <class Entries>
void add_names(std::vector<std::string>& names, const Entries& entries) {
  for (const auto& entry : entries) names.emplace_back(entry.name);
}

std::vector<std::string> known_mesh_orders() { return {"row-major", "jax", "snake"}; }
std::vector<std::string> known_topologies() { return {"torus", "mesh", "twisted", "crossbar", "fat-tree:LEAF[:OVERSUBSCRIPTION]", "rail"}; }

std::vector<std::string> known_workloads() {
  std::vector<std::string> names = shipped_transformer_blocks();
  constexpr std::string_view block = "-block";
  for (std::size_t i = 0, shipped = names.size(); i < shipped; ++i)
    if (names[i].ends_with(block)) names.push_back(names[i].substr(0, names[i].size() - block.size()) + "-mlp");
  return names;
}

std::vector<std::string> known_pipelines() {
  std::vector<std::string> names;
  for (const PipelineSchedule schedule : all_pipeline_schedules()) names.emplace_back(name_of(schedule));
  return names;
}

std::vector<std::string> known_collectives() {
  std::vector<std::string> names;
  for (int kind = 0; kind < collective_kind_count; ++kind) names.emplace_back(name_of(static_cast<CollectiveKind>(kind)));
  return names;
}

std::vector<std::string> known_dtypes() {
  std::vector<std::string> names;
  for (int dtype = 0; dtype < dtype_count; ++dtype) names.emplace_back(name_of(static_cast<DType>(dtype)));
  return names;
}

std::vector<std::string> known_engines() {
  std::vector<std::string> names;
  add_names(names, all_timing_engines());
  return names;
}

std::vector<std::string> known_gemm_algorithms() {
  std::vector<std::string> names;
  add_names(names, gemm_algorithms());
  return names;
}

std::vector<std::string> known_collective_algorithms() {
  std::vector<std::string> names;
  add_names(names, collective_algorithms());
  names.emplace_back(auto_name);
  return names;
}

// ---- Checks -------------------------------------------------------------------------------------------------------------------------------

using Text = const std::string&;
using Kind = std::string_view;

template <class T>
Status status_of(const Expected<T>& read) {
  return read ? success() : Status{read.error()};
}

Fields with(std::string_view name, Text text) {
  Fields fields;
  fields.add_value(name, text, of_field(std::string{name}));
  return fields;
}

/// Workloads may leave the choice open among several.
std::vector<std::string> choices_in(Text text, Kind problem) { return problem == "workload" ? split(text) : std::vector<std::string>{text}; }

Status check_algorithm(Text text, Kind problem) {
  if (problem == "program") return status_of(read_kernels(with("algorithm", text), {}));
  if (problem != "gemm" && problem != "workload" && problem != "training" && problem != "maxtext") return text == auto_name ? success() : status_of(always(text));
  for (const std::string& name : choices_in(text, problem))
    if (auto known = gemm_algorithm(name); !known) return known.error();
  return success();
}

Status check_dataflow(Text text, Kind problem) {
  for (const std::string& name : choices_in(text, problem))
    if (auto known = parse_dataflow(name, of_field("dataflow")); !known) return known.error();
  return success();
}

}  // namespace

// ---- The table ------------------------------------------------------------------------------------------------------------------------------

std::span<const FieldKind> scenario_fields() {
  using enum FieldKind::Group;
  using enum Form;
  static constexpr std::int64_t any = std::numeric_limits<std::int64_t>::max(), most_slices = 1 << 20, widest = 1 << 30;
  static constexpr std::array fields{
      // The system.
      FieldKind{.name = "machine", .group = system, .form = name_or_file, .placeholder = "NAME|FILE", .help = "a shipped machine (podsim show machine lists them) or a textproto file",
                .usual = true, .names = shipped_machines, .check = [](Text value, Kind) { return status_of(find_machine(value)); }, .compared = {.suffix = "[,...]"}},
      FieldKind{.name = "set", .group = system, .form = pairs, .placeholder = "PATH=VALUE",
                .help = "override a machine value: link.bandwidth=45GB/s, link[x].latency=1us, chip.peak[bf16]=275TFLOP/s, software.launch[all-gather]=5us; repeatable", .repeated = true, .usual = true},
      FieldKind{.name = "precision", .group = precision, .form = word, .placeholder = "default|high|highest",
                .help = "precision of float32 products, as jax.lax.Precision: 1, 3 or 6 bf16 passes; on GPUs TF32, highest IEEE float32. Left out: the machine's "
                        "chip.float32_passes, default where it is shipped. Products of a module that say their precision keep it"},
      FieldKind{.name = "slice", .group = system, .form = extents, .placeholder = "AxB[xC]",
                .help = "chips per physical dimension, as 16x16 or 4x8x8, or the name of a slice, as v5p-512; left out: the sizes of --mesh", .usual = true, .compared = {.suffix = "[,...]"}},
      FieldKind{.name = "strict_slice", .group = system, .form = flag, .help = "refuse a slice that the vendor does not offer"},
      FieldKind{.name = "wrap", .group = system, .form = text, .placeholder = "auto|all|none|x,y",
                .help = "which dimensions wrap; auto: as the vendor builds the slice, hypothetical slices wrap every extent above 2", .otherwise = "auto",
                .check = [](Text value, Kind) { return status_of(parse_wrap(value, of_field("wrap"))); }},
      FieldKind{.name = "topology", .group = what_if, .form = name_or_file, .placeholder = "NAME",
                .help = "interconnect of the machine's chips and links: {}, or a FILE.textproto of chips, switches and cables; left out: what the machine builds",
                .names = known_topologies, .compared = {.suffix = "[,...]"}},
      FieldKind{.name = "pods", .group = what_if, .form = count, .placeholder = "N", .help = "slices, joined over their hosts and the data-centre network", .otherwise = "1", .high = 1024},
      FieldKind{.name = "devices", .group = devices, .form = text, .placeholder = "0,2,4,6",
                .help = "lay the mesh over these devices of the slice, row-major: numbers in row-major order, chips of two devices have two each, slices of --pods follow one another; "
                        "left out: all"},
      FieldKind{.name = "mesh", .group = system, .form = mesh, .placeholder = "row=R,col=C",
                .help = "logical axes, row-major over the slice; left out: one axis per slice dimension, named row, col, depth, axis3",
                .usual = true, .check = [](Text value, Kind) { return value == "all" ? success() : status_of(parse_mesh(value, of_field("mesh"))); },
                .compared = {.repeated = true, .help = "logical axes, row-major over the slice; repeatable, or `all` for every row x col; left out: of one topology as in run, of several each has its best mesh: of --gemm "
                                                       "of every row x col, of --workload and of --collective without --axis of those along whole dimensions (over switches, or with --allow-split-axes, of all)"}},
      FieldKind{.name = "mesh_order", .group = system, .form = name_or_file, .placeholder = "ORDER",
                .help = "which chip each device of the mesh gets: row-major, jax (as create_device_mesh assigns), snake, or a file of chip numbers", .otherwise = "row-major",
                .names = known_mesh_orders, .compared = {.suffix = "[,...]"}},
      FieldKind{.name = "allow_split_axes", .group = system, .form = flag, .help = "jax: a logical axis may take part of a physical one"},
      FieldKind{.name = "contiguous_submeshes", .group = system, .form = flag, .help = "jax: hosts' devices stay together"},
      FieldKind{.name = "fail", .group = what_if, .form = text, .placeholder = "CABLE",
                .help = "a broken cable between two chips, by coordinates: 0.0-0.1, or to a switch by its name: '0.0-rail 0'; repeatable; run: `any` tries one of every sort", .repeated = true,
                .check = [](Text value, Kind) -> Status { return value == "any" ? Status{Diagnostic{of_field("fail"), "any is for podsim run, expected a cable between two chips, as 0.0-0.1"}} : success(); }},
      FieldKind{.name = "degrade", .group = what_if, .form = pairs, .placeholder = "CABLE=PART",
                .help = "a slow cable: 0.0-0.1=0.5; repeatable. Transfers keep to their routes, however slow; around a broken one they are routed", .repeated = true},
      FieldKind{.name = "straggler", .group = what_if, .form = pairs, .placeholder = "CHIP=PART", .help = "a slow device: 3.2=0.8, or random:1%=0.8 (of the mesh); repeatable", .repeated = true},
      FieldKind{.name = "seed", .group = what_if, .form = count, .placeholder = "N", .help = "decides what is random", .otherwise = "0", .low = 0, .high = any},

      // The problem.
      FieldKind{.name = "gemm", .group = problem, .form = gemm, .placeholder = "m=M,n=N,k=K[,dtype=bf16]",
                .help = "Y[m,n] = X.W over k (k is the contraction). dtype: f32, bf16, f8e4m3fn or f8e5m2 (Y in bf16), s8 (Y in s32)",
                .check = [](Text value, Kind) { return status_of(parse_gemm(value, DType::bf16, of_field("gemm"))); }},
      FieldKind{.name = "collective", .group = problem, .form = name, .placeholder = "KIND", .help = "one collective along --axis: {}", .names = known_collectives,
                .check = [](Text value, Kind) { return status_of(parse_collective_kind(value, of_field("collective"))); },
                .compared = {.suffix = "[,...]", .help = "collectives along --axis: {}"}},
      FieldKind{.name = "schedule", .group = problem, .form = file, .placeholder = "FILE", .help = "a saved schedule, textproto or binary (podsim show schedule -o FILE writes one)",
                .check = [](Text value, Kind) { return status_of(load_schedule(value)); }},
      FieldKind{.name = "msccl", .group = problem, .form = file, .placeholder = "FILE.xml", .help = "a collective of all devices as an algorithm of MSCCL, with --bytes",
                .check = [](Text value, Kind) { return status_of(load_msccl(value)); },
                .compared = {.suffix = "...", .repeated = true,
                             .help = "algorithms of MSCCL, on all devices: beside those of --collective, or alone; more files may follow without the option's name"}},
      FieldKind{.name = "chakra", .group = problem, .form = file, .placeholder = "PREFIX",
                .help = "Chakra execution traces PREFIX.<rank>.et; rank r is device r of the mesh. Without --mesh: as podsim wrote it down, else one axis of all ranks (without --slice)"},
      FieldKind{.name = "chakra_groups", .group = problem, .form = file, .placeholder = "FILE.json",
                .help = "the ranks of the traces' process groups, as {\"1\": [0,1], \"2\": [2,3]}; left out: PREFIX.groups.json, if there is one", .problems = {"chakra"}},
      FieldKind{.name = "chakra_cost", .group = problem, .form = word, .placeholder = "recorded|flops",
                .help = "the time of the traces' computations: as recorded (duration_ps, else duration_micros), or by num_ops and tensor_size on the machine", .otherwise = "recorded",
                .problems = {"chakra"}},
      FieldKind{.name = "hlo", .group = hlo, .form = file, .placeholder = "FILE",
                .help = "a compiled module: compiled.as_text(), *.after_optimizations.txt, or a binary HloProto or HloModuleProto, gzipped or not; - is the standard input"},
      FieldKind{.name = "equals", .group = check, .form = text, .placeholder = "TEXT",
                .help = "what a module of --hlo computes, as 'C = A @ B': its parameters are the inputs and its results the outputs, in order, with --shape, --shard and --out; left out: it is "
                        "compared with its own meaning, in float64",
                .problems = {"hlo"}, .repeated = true},
      FieldKind{.name = "hlo_cost", .group = hlo, .form = word, .placeholder = "model|estimated-cycles", .help = "work by the machine's values, or as the TPU compiler estimated it",
                .otherwise = "model", .problems = {"hlo"}},
      FieldKind{.name = "clock", .group = hlo, .form = amount, .placeholder = "940MHz", .help = "the clock of --hlo-cost estimated-cycles; left out: at which the TPU's units give its peak",
                .problems = {"hlo"}, .check = [](Text value, Kind) { return status_of(parse_clock(value, of_field("clock"))); }},
      FieldKind{.name = "hlo_schedule", .group = hlo, .form = word, .placeholder = "text|overlap",
                .help = "text: instructions run as they stand, collectives block, but for what stands between -start and -done; overlap: collectives begin when their operands are there, and only what "
                        "needs them waits. Left out: of a scheduled module text, else overlap",
                .problems = {"hlo"}},
      FieldKind{.name = "rewrite", .group = hlo, .form = word, .placeholder = "reduce-scatter|bf16-reductions|split|combine|prefetch",
                .help = "reduce-scatter: an all-reduce of which only the own block is used becomes one, as GPU compilers do; bf16-reductions: all-reduces and reduce-scatters of float32 send bf16, "
                        "and converting costs nothing of its own, as it is fused; split: all-reduces, all-gathers and reduce-scatters of several arrays are one for each array (with combine: regrouped); combine: all-reduces, all-gathers and reduce-scatters of one kind that do not need each other are one, up to "
                        "--combine-threshold; prefetch: all-gathers of loops begin in the trip before, where their operand follows from the count of trips; repeatable",
                .problems = {"hlo"}, .repeated = true},
      FieldKind{.name = "combine_threshold", .group = hlo, .form = amount, .placeholder = "BYTES",
                .help = "the most bytes of results of collectives that --rewrite combine makes one, as xla_gpu_all_reduce_combine_threshold_bytes and its like", .otherwise = "30MiB", .problems = {"hlo"},
                .check = [](Text value, Kind) { return status_of(parse_bytes(value, of_field("combine_threshold"))); }},
      FieldKind{.name = "trip_count", .group = hlo, .form = pairs, .placeholder = "NAME=N", .help = "iterations of the loop NAME, if the module does not tell; repeatable", .problems = {"hlo"},
                .repeated = true, .check = [](Text value, Kind) { return status_of(read_hlo_counts(with("trip_count", value))); }},
      FieldKind{.name = "branch", .group = hlo, .form = pairs, .placeholder = "NAME=i", .help = "the branch of the conditional NAME; left out: the longest; repeatable", .problems = {"hlo"},
                .repeated = true, .check = [](Text value, Kind) { return status_of(read_hlo_counts(with("branch", value))); }},
      FieldKind{.name = "custom_call", .group = hlo, .form = pairs, .placeholder = "TARGET=FLOPS[,BYTES]",
                .help = "what a custom-call costs, by target or by kernel: splash_mha_fwd=2GFLOP,8MiB; repeatable", .problems = {"hlo"}, .repeated = true,
                .check = [](Text value, Kind) { return status_of(read_hlo_counts(with("custom_call", value))); }},
      FieldKind{.name = "ragged", .group = hlo, .form = named_files, .placeholder = "[NAME=]FILE.csv",
                .help = "rows that each device of a group sends to each in the ragged-all-to-all NAME, a line of the file for each sender; left out: as many to each as its operand has room "
                        "for; repeatable",
                .problems = {"hlo"}, .repeated = true, .check = [](Text value, Kind) { return status_of(read_hlo_counts(with("ragged", value))); }},
      FieldKind{.name = "workload", .group = workload, .form = name_or_file, .placeholder = "NAME|FILE",
                .help = "a transformer block: {} (-mlp: the MLP alone), or a textproto file (workloads/transformer.proto)", .names = known_workloads,
                .check = [](Text value, Kind) { return status_of(find_transformer_block(value)); }},
      FieldKind{.name = "plan", .group = problem, .form = file, .placeholder = "FILE", .help = "a plan of a workload, as podsim tune -o writes it",
                .check = [](Text value, Kind) { return status_of(load_plan(value)); }},
      FieldKind{.name = "program", .group = problem, .form = name_or_file, .placeholder = "TEXT|FILE",
                .help = "statements on sharded arrays, separated by ; as 'C = A @ B; Y = relu(C)', shard_map { } too; or a textproto file (workloads/scenario/program.proto)"},
      FieldKind{.name = "shape", .group = problem, .form = shapes, .placeholder = "A=48x24", .help = "the shape of an input of --program; repeatable, or separated by ;",
                .problems = {"program", "hlo"}, .repeated = true, .usual = true},
      FieldKind{.name = "shard", .group = problem, .form = shardings, .placeholder = "A=x,-",
                .help = "the mesh axes that divide each dimension of an input: x, - for none, (x+y) for two; left out: replicated", .problems = {"program", "hlo"}, .repeated = true, .usual = true},
      FieldKind{.name = "out", .group = problem, .form = shardings, .placeholder = "C=x,y",
                .help = "the sharding that a result of --program is needed in; partial sums stay pending with C=unreduced(x):-,y", .problems = {"program", "hlo"}, .repeated = true, .usual = true},
      FieldKind{.name = "choose", .group = problem, .form = word, .placeholder = "default|bytes|time",
                .help = "which collectives are inserted, operation by operation: those of the usual rules, with the fewest bytes received per device, or the fastest by des; of a whole program "
                        "another way may be better",
                .otherwise = "bytes", .problems = {"program"}},
      FieldKind{.name = "chain", .group = problem, .form = flag,
                .help = "--program is one product of 3 to 8 matrices (or X = A @ X): search the order of the products and the shardings that are not given", .problems = {"program"}},
      FieldKind{.name = "minimise", .group = problem, .form = word, .placeholder = "bytes|collectives|time", .help = "what --chain makes least", .otherwise = "bytes", .problems = {"program"}},
      FieldKind{.name = "replicate", .group = problem, .form = text, .placeholder = "A[,...]|all", .help = "operands of --chain that need not be divided over all devices",
                .problems = {"program"}, .repeated = true},
      FieldKind{.name = "look_ahead", .group = problem, .form = count, .placeholder = "0|1", .help = "lu and solve in --program: 1 factors the next panel before the rest of an update",
                .otherwise = "0", .low = 0, .high = 1, .problems = {"program"}},
      FieldKind{.name = "order", .group = problem, .form = word, .placeholder = "transposed|natural",
                .help = "fft and ifft in --program: transposed leaves the result of a 3-D transform stored as dimensions 1, 2, 0 (2-D: 1, 0), which saves as many all-to-alls as it takes",
                .otherwise = "natural", .problems = {"program"}},
      FieldKind{.name = "overlap", .group = problem, .form = count, .placeholder = "CHUNKS",
                .help = "fft and ifft in --program: the all-to-all of a part runs beside the FFTs of the rest; helps where both take about as long and the rows of a chunk still fill the 128 "
                        "lanes of a TPU (64 numbers of c64)",
                .otherwise = "1", .high = 1 << 16, .problems = {"program"}},
      FieldKind{.name = "training", .group = training, .form = name_or_file, .placeholder = "NAME|FILE.textproto",
                .help = "a training step of a model (podsim show training lists those shipped); with --maxtext: KEY=VALUE, also without the option's name. Axes of --mesh: slice, stage, data, "
                        "fsdp, row, col; left out: fsdp over all devices",
                .repeated = true, .names = shipped_training_models, .check = [](Text value, Kind problem) { return problem == "maxtext" ? success() : status_of(find_training_model(value)); }},
      FieldKind{.name = "maxtext", .group = training, .form = file, .placeholder = "FILE.yml", .help = "a training step as a configuration of MaxText has it", .problems = {"training"}},
      FieldKind{.name = "batch_per_device", .group = training, .form = number, .placeholder = "B", .help = "--batch over the devices; may be a fraction. Left out: 1", .problems = {"training"},
                .check = [](Text value, Kind) { return status_of(parse_number(value, of_field("batch_per_device"))); }},
      FieldKind{.name = "microbatches", .group = training, .form = count, .placeholder = "M", .help = "parts that a training step divides its batch into", .otherwise = "1",
                .problems = {"training"}, .usual = true, .compared = {.suffix = "[,...]"}},
      FieldKind{.name = "pipeline", .group = training, .form = name, .placeholder = "NAME",
                .help = "the pipeline schedule of several stages: {}; left out: 1f1b, interleaved-1f1b with virtual stages", .problems = {"training"}, .usual = true, .names = known_pipelines,
                .check = [](Text value, Kind) { return status_of(pipeline_schedule_named(value, of_field("pipeline"))); }, .compared = {.suffix = "[,...]"}},
      FieldKind{.name = "virtual_stages", .group = training, .form = count, .placeholder = "V", .help = "stages on each rank of the pipeline", .otherwise = "1", .problems = {"training"}, .usual = true},
      FieldKind{.name = "fuse_steady_state", .group = training, .form = flag, .help = "interleaved-1f1b and kimi-k2: forwards fused with backwards", .problems = {"training"}},
      FieldKind{.name = "remat", .group = training, .form = text, .placeholder = "none|full|layer|selected:LIST",
                .help = "what the backward pass computes again: nothing, all that it needs, the whole layer, or all but the outputs of these stages: selected:in_proj,ff1, where in_proj@host is "
                        "kept on the host",
                .otherwise = "none", .problems = {"training"}, .usual = true, .check = [](Text value, Kind) { return status_of(parse_remat(value, of_field("remat"))); }, .compared = {.suffix = "[;...]"}},
      FieldKind{.name = "scan", .group = training, .form = word, .placeholder = "on|off", .help = "layers as a loop: the gradients of each are copied into one array", .otherwise = "off",
                .problems = {"training"}},
      FieldKind{.name = "optimizer", .group = training, .form = word, .placeholder = "adamw|sgd", .help = "the optimizer of --training, and so the state that it keeps", .otherwise = "adamw",
                .problems = {"training"}},
      FieldKind{.name = "shard_optimizer_over_data", .group = training, .form = word, .placeholder = "on|off",
                .help = "the optimizer's state and update in parts over the axis data, of which gradients are scattered and weights gathered: ZeRO-1, Megatron-LM's --use-distributed-optimizer",
                .otherwise = "off", .problems = {"training"}},
      FieldKind{.name = "steps", .group = training, .form = count, .placeholder = "N", .help = "training steps, one after the other on one batch", .otherwise = "1", .high = 1000,
                .problems = {"training"}},
      FieldKind{.name = "only", .group = workload, .form = word, .placeholder = "gemm|other", .help = "the products of --workload alone, or everything but them", .problems = {"workload"}, .usual = true},
      FieldKind{.name = "batch", .group = workload, .form = count, .placeholder = "N", .help = "sequences; left out: as the workload says, or as many as devices",
                .problems = {"workload", "training"}, .usual = true},
      FieldKind{.name = "seq", .group = model, .form = count, .placeholder = "N", .help = "tokens of a sequence of --workload or --training", .high = widest, .problems = {"workload", "training"}, .usual = true},
      FieldKind{.name = "heads", .group = model, .form = count, .placeholder = "N", .help = "attention heads; the model's width follows: heads * head-dim", .high = widest,
                .problems = {"workload", "training"}},
      FieldKind{.name = "kv_heads", .group = model, .form = count, .placeholder = "N", .help = "heads of keys and values", .high = widest, .problems = {"workload", "training"}},
      FieldKind{.name = "head_dim", .group = model, .form = count, .placeholder = "N", .help = "width of a head", .high = widest, .problems = {"workload", "training"}},
      FieldKind{.name = "ff", .group = model, .form = count, .placeholder = "N", .help = "width of the MLP; left out with --heads: grows as the model's width does", .high = widest,
                .problems = {"workload", "training"}},
      FieldKind{.name = "layers", .group = model, .form = count, .placeholder = "N",
                .help = "layers of --training; of --workload the blocks that a device holds, for its memory", .high = widest, .problems = {"workload", "training"}},
      FieldKind{.name = "axis", .group = problem, .form = text, .placeholder = "NAME[,...]",
                .help = "the mesh axes of --collective, first most significant; left out: all with more than one device", .problems = {"collective"}, .usual = true, .compared = {.repeated = true, .help = "the mesh axes of --collective, first most significant; repeatable: the collective along other axes"}},
      FieldKind{.name = "bytes", .group = problem, .form = amount, .placeholder = "N", .help = "input bytes on each device of --collective and --msccl, a bare number or as 16MiB",
                .problems = {"collective", "msccl"}, .usual = true, .check = [](Text value, Kind) { return status_of(parse_input_bytes(value, of_field("bytes"))); },
                .compared = {.suffix = "[,...]", .help = "input bytes on each device of --collective and --msccl: 64KiB,1MiB,16MiB; 8..128M: each twice the one before, 8..128M:4 four times, as nccl-tests' -b 8 -e 128M -f 4"}},
      FieldKind{.name = "dtype", .group = problem, .form = name, .placeholder = "bf16|f32",
                .help = "element type of --collective ({}), --msccl and --program, where --shape X=64x64,c64 names that of one array; of transforms and linear systems f32 if left out",
                .problems = {"collective", "msccl", "program"}, .usual = true, .names = known_dtypes, .check = [](Text value, Kind) { return status_of(parse_dtype(value, of_field("dtype"))); }},
      FieldKind{.name = "root", .group = problem, .form = count, .placeholder = "N", .help = "broadcast, reduce: the root's position along the axes; left out: 0", .low = 0, .high = any,
                .problems = {"collective"}},
      FieldKind{.name = "chunks", .group = problem, .form = count, .placeholder = "N",
                .help = "pieces of the data in broadcast, reduce and algorithms in chunks (hierarchical, tree, in-switch); left out: what takes least time by a model of the pipeline. "
                        "rotations: at most so many",
                .high = most_slices, .problems = {"collective"}},
      FieldKind{.name = "shift", .group = problem, .form = count, .placeholder = "N", .help = "permute: everybody to their position + N", .low = -any, .high = any, .problems = {"collective"}},
      FieldKind{.name = "pairs", .group = problem, .form = file, .placeholder = "FILE", .help = "permute: lines `from to`, positions along the axes; # begins a comment", .problems = {"collective"}},
      FieldKind{.name = "pass", .group = problem, .form = word, .placeholder = "forward|backward|both", .help = "a layer's forward product, its two gradients, or all three", .otherwise = "forward",
                .problems = {"gemm", "workload", "plan"}, .usual = true},
      FieldKind{.name = "pad", .group = problem, .form = flag,
                .help = "round extents up to what divides, and say how much is wasted; fft and ifft too: zeros in real space, which changes the transform to that of the larger array; not lu and "
                        "solve",
                .problems = {"gemm", "program", "training"}},
      FieldKind{.name = "algorithm", .group = problem, .form = named_texts, .placeholder = "NAME",
                .help = "GEMMs: {gemm}. Collectives: {collective} (auto, also if left out: the cheapest, in any order of axes). --program: fft=pencil|slab|four-step|naive, lu=block|naive, "
                        "solve=block|naive|batched, separated by commas; left out: the distributed one where it applies",
                .problems = {"gemm", "collective", "workload", "program", "training", "schedule", "chakra"}, .usual = true, .check = check_algorithm,
                .compared = {.suffix = "[,...]|all", .help = "the same as --algorithms"}},
      FieldKind{.name = "dataflow", .group = problem, .form = word, .placeholder = "os|ls|rs",
                .help = "which operand stands still: output, left or right; left out: os, or what the algorithm's name says", .problems = {"gemm", "workload"}, .usual = true, .check = check_dataflow,
                .compared = {.suffix = "[,...]", .help = "which operand stands still: output, left or right", .otherwise = "os"}},
      FieldKind{.name = "slice_count", .group = problem, .form = named_texts, .placeholder = "S", .help = "slices of meshslice; panels of summa (left out: lcm(R, C))", .high = most_slices,
                .problems = {"gemm", "workload", "program", "training"}, .usual = true, .check = [](Text value, Kind) { return status_of(with("slice_count", value).count("slice_count")); },
                .compared = {.suffix = "[,...]", .help = "slices of meshslice; left out: 2, 4, 8 and 16 (summa takes lcm(R, C) panels)"}},
      FieldKind{.name = "block", .group = problem, .form = count, .placeholder = "B",
                .help = "rows or columns of a slice's interleaved blocks; of lu and solve in --program those of a block, which divides the matrix (left out: up to 128)", .otherwise = "8",
                .high = most_slices, .problems = {"gemm", "workload", "program"}},
      FieldKind{.name = "prefetch", .group = problem, .form = count, .placeholder = "P", .help = "slices that run ahead of the matmul", .otherwise = "1", .low = 0, .high = 1024,
                .problems = {"gemm", "workload", "program"}},
      FieldKind{.name = "slice_copies", .group = problem, .form = word, .placeholder = "on|off", .help = "whether cutting slices costs copies on the core; left out: as the machine says",
                .problems = {"gemm", "workload", "program"}},
      FieldKind{.name = "wang_operand", .group = problem, .form = word, .placeholder = "x|w", .help = "which operand of wang OS travels; left out: the one with more bytes times hops",
                .problems = {"gemm"}},
      FieldKind{.name = "collectives", .group = problem, .form = text, .placeholder = "NAME|auto",
                .help = "the algorithm of the collectives of a GEMM or program; auto: each the fastest, on a folded axis also several physical ones at once; left out: ring, or line on open axes, of a training step between slices direct and on GPUs nccl (all-to-alls direct, over several GPUs of several nodes hierarchical, else rings), of a module on GPUs auto, as NCCL chooses, and on TPUs as compiled",
                .problems = {"gemm", "program", "training", "hlo"}, .usual = true, .check = [](Text value, Kind) { return status_of(parse_policy(value, of_field("collectives"))); }},
      FieldKind{.name = "given", .group = problem, .form = text, .placeholder = "X[,W,dY]",
                .help = "operands of --gemm that are there as an algorithm needs them; any other one that it needs on several devices at once begins split over all of them and is gathered first, "
                        "in its time (1d-megatron: X)",
                .problems = {"gemm"}, .check = [](Text value, Kind) { return status_of(parse_given(value, of_field("given"))); }},

      // How to simulate.
      FieldKind{.name = "engine", .group = engine, .form = name, .placeholder = "des|simgrid|analytic", .help = "who keeps the time; analytic: as if no two messages shared a link",
                .otherwise = "des", .usual = true, .names = known_engines, .check = [](Text value, Kind) { return status_of(timing_engine(value)); }},
      FieldKind{.name = "fold", .group = engine, .form = word, .placeholder = "auto|off", .help = "auto: devices that behave alike are simulated once, to the same picosecond; off: every device",
                .otherwise = "auto"},
      FieldKind{.name = "calls", .group = engine, .form = word, .placeholder = "auto|inline",
                .help = "calls of a schedule's functions. auto: a call is played as one task where that is exact, and in large models where only memory or cores of its devices are shared "
                        "meanwhile; inline: always task by task, as with --explain",
                .otherwise = "auto"},
      FieldKind{.name = "force", .group = engine, .form = flag, .help = "simulate however many task instances there are, and what a comparison leaves out as long to simulate"},
  };
  return fields;
}

std::string help_of(const FieldKind& field, bool compared) {
  std::string text{compared && !field.compared.help.empty() ? field.compared.help : field.help};
  for (const auto& [mark, names] : {std::pair<std::string_view, FieldKind::Names>{"{}", field.names}, {"{gemm}", known_gemm_algorithms}, {"{collective}", known_collective_algorithms}})
    if (const std::size_t at = text.find(mark); at != std::string::npos) text.replace(at, mark.size(), fmt::format("{}", fmt::join(names(), ", ")));
  return text;
}

}  // namespace podsim

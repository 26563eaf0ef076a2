#include "tools/command/scenario_options.hpp"

#include <algorithm>

#include "tools/console/caller.hpp"
#include "tools/sweep/points.hpp"
#include "workloads/chakra/trace.hpp"
#include "workloads/scenario/alignment.hpp"

namespace podsim {

OptionGroup system_options(bool several) {
  return {{"machine", input_file(several ? "NAME|FILE[,...]" : "NAME|FILE", several ? files_between_commas : one_file),
       "a shipped machine (podsim show machine lists them) or a textproto file"},
          {"slice", word(several ? "AxB[xC][,...]" : "AxB[xC]"),
       "chips per physical dimension, as 16x16 or 4x8x8, or the name of\na slice, as v5p-512; left out: the sizes of --mesh"},
          {"strict-slice", flag(), "refuse a slice that the vendor does not offer"},
          {"wrap", word("auto|all|none|x,y", "auto"),
       "which dimensions wrap; auto: as the vendor builds the slice,\nhypothetical slices wrap every extent above 2"},
          {"mesh", words("row=R,col=C"),
       several ? "logical axes, row-major over the slice; repeatable, or `all` for\nevery row x col"
               : "logical axes, row-major over the slice; left out: one axis\nper slice dimension, named row, col, depth, axis3"},
          {"mesh-order", OptionValue{OptionValue::Kind::one, "ORDER", "row-major", one_file},
       "which chip each device of the mesh gets: row-major, jax (as\ncreate_device_mesh assigns), snake, or a file of chip numbers"},
          {"allow-split-axes", flag(), "jax: a logical axis may take part of a physical one"},
          {"contiguous-submeshes", flag(), "jax: hosts' devices stay together"},
          {"set", words("PATH=VALUE"),
       "override a machine value: link.bandwidth=45GB/s,\nlink[x].latency=1us, chip.peak[bf16]=275TFLOP/s,\nsoftware.launch[all-gather]=5us; "
       "repeatable"}};
}

OptionGroup mesh_devices_option() {
  return {{"devices", word("0,2,4,6"),
           "lay the mesh over these devices of the slice, row-major: numbers\nin row-major order, chips of two devices have two each, slices of\n--pods "
           "follow one another; left out: all"}};
}

OptionGroup precision_option() {
  return {{"precision", word("default|high|highest"),
           "of float32 products, as jax.lax.Precision: 1, 3 or 6 bf16 passes; on\nGPUs TF32, highest IEEE float32. Left out: the machine's\nchip.float32_passes, default where it is shipped. Products of a module\nthat say their precision keep it"}};
}

OptionGroup what_if_options(bool several) {
  return {{"topology", input_file(several ? "NAME[,...]" : "NAME", several ? files_between_commas : one_file),
       "of the machine's chips and links: torus, mesh, twisted, crossbar,\nfat-tree:LEAF[:OVERSUBSCRIPTION], rail, or a FILE.textproto of "
       "chips,\nswitches and cables; left out: what the machine "
       "builds"},
          {"pods", word("N", "1"), "slices, joined over their hosts and the data-centre network"},
          {"fail", words("CABLE"), "a broken cable between two chips, by coordinates: 0.0-0.1, or to a switch\nby its name: '0.0-rail 0'; repeatable; run: `any` tries one of every sort"},
          {"degrade", words("CABLE=PART"), "a slow cable: 0.0-0.1=0.5; repeatable. Transfers keep to their routes,\nhowever slow; around a broken one they are routed"},
          {"straggler", words("CHIP=PART"), "a slow device: 3.2=0.8, or random:1%=0.8 (of the mesh); repeatable"},
          {"seed", word("N", "0"), "of what is random"}};
}

namespace {

/// The first trace tells them apart from other files of the command line.
std::vector<std::string> chakra_files(const std::string& prefix) { return {chakra_file(prefix, 0)}; }

/// The problems of one run, and which algorithm does them.
OptionGroup one_problem() {
  return {{"collective", word("KIND"),
       "one collective along --axis: all-gather, reduce-scatter, all-reduce,\nall-to-all, broadcast, reduce, permute"},
          {"axis", word("NAME[,...]"),
       "the mesh axes of --collective, first most significant; left out:\nall with more than one device"},
          {"bytes", word("N"), "input bytes on each device of --collective and --msccl, a bare number\nor as 16MiB"},
          {"scenario", input_file("FILE"), "what to run, where options do not say otherwise: a textproto of their\nnames (workloads/scenario/scenario.proto)"},
          {"plan", input_file("FILE"), "a plan of a workload, as podsim tune -o writes it"},
          {"schedule", input_file("FILE"), "a saved schedule, textproto or binary (podsim show schedule -o FILE writes one)"},
          {"msccl", input_file("FILE.xml"), "a collective of all devices as an algorithm of MSCCL, with --bytes"},
          {"chakra", input_file("PREFIX", chakra_files),
       "Chakra execution traces PREFIX.<rank>.et; rank r is device r of the\nmesh. Without --mesh: as podsim wrote it down, else one axis of all\nranks (without --slice)"},
          {"chakra-groups", input_file("FILE.json"),
       "the ranks of their process groups, as {\"1\": [0,1], \"2\": [2,3]};\nleft out: PREFIX.groups.json, if there is one"},
          {"chakra-cost", word("recorded|flops", "recorded"),
       "the time of their computations: as recorded (duration_ps, else\nduration_micros), or of num_ops and tensor_size on the machine"},
          {"algorithm", word("NAME"),
       "GEMM: collective, meshslice, summa, cannon, wang, 1d-os, 1d-ls,\n1d-fsdp, 1d-megatron, jax-ag-..., jax-rs-..., tp-ag-...\ncollective: "
       "ring, ring-one-way, ring-shortest, line,\nfolded-ring, halving-doubling, direct, pairwise, rotations,\nhamiltonian-ring, hierarchical, hierarchical-direct,\n"
       "hierarchical-doubling, channels, tree, in-switch,\nhierarchical-in-switch, pallas-ring, pallas-bidirectional,\npallas-alternating, or auto: the cheapest, in any order of axes\n(also if "
       "left out)\n--program: fft=pencil|slab|four-step|naive, lu=block|naive,\nsolve=block|naive|batched, separated by commas; left out: the\ndistributed one where it applies"},
          {"dataflow", word("os|ls|rs"), "which operand stands still: output, left or right; left out: os,\nor what the algorithm's name says"},
          {"slice-count", word("S"), "slices of meshslice; panels of summa (left out: lcm(R, C))"}};
}

/// Sharded programs.
OptionGroup program_options() {
  return {{"program", input_file("TEXT|FILE"),
       "statements on sharded arrays, separated by ; as 'C = A @ B; Y = relu(C)',\nshard_map { } too; or a textproto file (workloads/scenario/program.proto)"},
          {"shape", words("A=48x24"), "the shape of an input of --program; repeatable, or separated by ;"},
          {"shard", words("A=x,-"), "the mesh axes that divide each dimension of an input: x, - for none,\n(x+y) for two; left out: replicated"},
          {"out", words("C=x,y"), "the sharding that a result of --program is needed in; partial sums stay\npending with C=unreduced(x):-,y"},
          {"choose", word("default|bytes|time", "bytes"), "which collectives are inserted, operation by operation: those of the\nusual rules, with the fewest bytes received per device, or the\nfastest by des; of a whole program another way may be better"},
          {"chain", flag(), "--program is one product of 3 to 8 matrices (or X = A @ X): search the\norder of the products and the shardings that are not given"},
          {"minimise", word("bytes|collectives|time", "bytes"), "of --chain"},
          {"replicate", words("A[,...]|all"), "operands of --chain that need not be divided over all devices"},
          {"look-ahead", word("0|1", "0"), "of lu and solve in --program: 1 factors the next panel before the\nrest of an update"},
          {"order", word("transposed|natural", "natural"), "of fft and ifft in --program: transposed leaves the result of a\n3-D transform stored as dimensions 1, 2, 0 (2-D: 1, 0), which saves as\nmany all-to-alls as it takes"},
          {"overlap", word("CHUNKS", "1"), "of fft and ifft in --program: the all-to-all of a part runs beside the\nFFTs of the rest; helps where both take about as long and the rows of a\nchunk still fill the 128 lanes of a TPU (64 numbers of c64)"}};
}

/// The same as lists.
OptionGroup compared_problems() {
  return {{"collective", word("KIND[,...]"),
       "collectives along --axis: all-gather, reduce-scatter, all-reduce,\nall-to-all, broadcast, reduce, permute"},
          {"axis", words("NAME[,...]"),
       "the mesh axes of --collective, first most significant; repeatable:\nthe collective along other axes"},
          {"bytes", word("N[,...]"), "input bytes on each device of --collective: 64KiB,1MiB,16MiB"},
          {"msccl", input_files("FILE.xml...", files_between_commas), "algorithms of MSCCL, on all devices: beside those of --collective, or alone;\nmore files may follow without the option's name"},
          {"algorithm", word("NAME[,...]|all"), "the same as --algorithms"},
          {"algorithms", word("NAME[,...]|all", "collective,meshslice"), "which algorithms to compare; left out, of --collective: all.\n--program: fft=pencil,fft=slab,lu=naive (every combination; functions\nthat are not named: as in run), naive (all functions that have it), or\nall; left out: all of a single function, of several what run does and\nnaive"},
          {"dataflow", word("os|ls|rs[,...]", "os"), "which operand stands still: output, left or right"},
          {"slice-count", word("S[,...]"), "slices of meshslice; left out: 2, 4, 8 and 16 (summa takes lcm(R, C) panels)"}};
}

}  // namespace

OptionGroup problem_options(bool several) {
  const OptionGroup gemm{{"gemm", word("m=M,n=N,k=K[,dtype=bf16]"), "Y[m,n] = X.W over k (k is the contraction). dtype: f32, bf16,\nf8e4m3fn or f8e5m2 (Y in bf16), s8 (Y in s32)"}};
  const OptionGroup details{{"root", word("N"), "broadcast, reduce: the root's position along the axes; left out: 0"},
          {"chunks", word("N"), "of broadcast, reduce and algorithms in chunks (hierarchical, tree,\nin-switch); left out: what takes least time by a model of the\npipeline. rotations: at most so many"},
          {"shift", word("N"), "permute: everybody to their position + N"},
          {"pairs", input_file("FILE"), "permute: lines `from to`, positions along the axes; # begins a comment"},
          {"dtype", word("bf16|f32"), "element type of --collective (also f8e4m3fn, f8e5m2, s8, c64, s32) and\nof --program, where --shape X=64x64,c64 names that of one array; of\ntransforms and linear systems f32 if left out"},
          {"pass", word("forward|backward|both", "forward"), "a layer's forward product, its two gradients, or all three"},
          {"wang-operand", word("x|w"), "which operand of wang OS travels; left out: the one with more\nbytes times hops"},
          {"block", word("B", "8"), "rows or columns of a slice's interleaved blocks; of lu and solve in\n--program those of a block, which divides the matrix (left out: up to 128)"},
          {"prefetch", word("P", "1"), "slices that run ahead of the matmul"},
          {"slice-copies", word("on|off"), "whether cutting slices costs copies on the core;\nleft out: as the machine says"},
          {"collectives", word("NAME|auto"),
       "the algorithm of the collectives of a GEMM or program; auto: each the fastest,\non a folded axis also several physical ones at once; left out: ring,\nor "
       "line on open axes"},
          {"given", word("X[,W,dY]"),
       "operands of --gemm that are there as an algorithm needs them; any\nother one that it needs on several devices at once begins split over\nall of "
       "them and is gathered first, in its time (1d-megatron: X)"},
          {"pad", flag(), "round extents up to what divides, and say how much is wasted; of fft and\nifft too: zeros in real space, which changes the transform to that of the\nlarger array; not of lu and solve"}};
  return joined({gemm, several ? compared_problems() : one_problem(), program_options(), details});
}

OptionGroup workload_options() {
  return joined({{{"workload", input_file("NAME|FILE"),
       "a transformer block: gpt3-block, megatron-nlg-block, llama3-8b-block,\nllama3-70b-block, llama3-405b-block (-mlp in place of -block: the MLP "
       "alone),\nor a textproto file (workloads/transformer.proto)"},
          {"only", word("gemm|other"), "the products of --workload alone, or everything but them"},
          {"batch", word("N"), "sequences; left out: as the workload says, or as many as devices"}},
                 model_options()});
}

OptionGroup model_options() {
  return {{"seq", word("N"), "tokens of a sequence of --workload or --training"},
          {"heads", word("N"), "attention heads; the model's width follows: heads * head-dim"},
          {"kv-heads", word("N"), "heads of keys and values"},
          {"head-dim", word("N"), "width of a head"},
          {"ff", word("N"), "width of the MLP; left out with --heads: grows as the model's width does"},
          {"layers", word("N"), "layers of --training; of --workload the blocks that a device holds, for\nits memory"}};
}

OptionGroup module_options() {
  return {{"hlo", input_file("FILE"), "a compiled module: compiled.as_text(), *.after_optimizations.txt, or a binary\nHloProto or HloModuleProto, gzipped or not; - is the standard input"},
          {"hlo-schedule", word("text|overlap", "overlap"), "of a module that is not scheduled: instructions in the text's order, where\ncollectives block; or collectives that begin when their operands are there"},
          {"rewrite", word("reduce-scatter"), "an all-reduce of which only the own block is used becomes one, as GPU\ncompilers do"},
          {"trip-count", words("NAME=N"), "iterations of the loop NAME, where the module does not tell; repeatable"},
          {"branch", words("NAME=i"), "the branch of the conditional NAME; left out: the longest; repeatable"},
          {"custom-call", words("TARGET=FLOPS[,BYTES]"), "what a custom-call costs, by target or by kernel: splash_mha_fwd=2GFLOP,8MiB; repeatable"},
          {"ragged", input_files("[NAME=]FILE.csv"), "rows that each device of a group sends to each in the ragged-all-to-all NAME,\na line of the file for each sender; left out: as many to each as its operand\nhas room for; repeatable"},
          {"hlo-cost", word("model|estimated-cycles", "model"), "work by the machine's values, or as the TPU compiler estimated it"},
          {"clock", word("940MHz"), "of estimated cycles; left out: at which the TPU's units give its peak"}};
}

OptionGroup training_options(bool several) {
  return {{"training", input_files("NAME|FILE.textproto"),
           "a training step of a model (podsim show training lists those shipped);\nwith --maxtext: KEY=VALUE, also without the option's name. Axes of --mesh:\nslice, stage, data, fsdp, row, col; left out: fsdp over all devices"},
          {"maxtext", input_file("FILE.yml"), "a training step as a configuration of MaxText has it"},
          {"batch-per-device", word("B"), "--batch over the devices; may be a fraction. Left out: 1"},
          {"microbatches", word(several ? "M[,...]" : "M", "1"), "of a training step"},
          {"pipeline", word(several ? "NAME[,...]" : "NAME"), "of several stages: gpipe, 1f1b, eager-1f1b, interleaved-1f1b, kimi-k2,\nzero-bubble, dual-pipe-v; left out: 1f1b, interleaved with virtual stages"},
          {"virtual-stages", word("V", "1"), "stages on each rank of the pipeline"},
          {"fuse-steady-state", flag(), "of interleaved-1f1b and kimi-k2: forwards fused with backwards"},
          {"remat", word(several ? "none|full|layer|selected:LIST[;...]" : "none|full|layer|selected:LIST", "none"), "what the backward pass computes again: nothing, all that it needs, the\nwhole layer, or all but the outputs of these stages:\nselected:in_proj,ff1, where in_proj@host is kept on the host"},
          {"scan", word("on|off", "off"), "layers as a loop: the gradients of each are copied into one array"},
          {"optimizer", word("adamw|sgd", "adamw"), "and so its state"},
          {"steps", word("N", "1"), "training steps, one after the other on one batch"}};
}

OptionGroup threads_option() {
  return {{"threads", word("N", "0"),
                          "runs at a time, where there are several; 0: all cores.\nThe results do not depend on it"}};
}

OptionGroup engine_options() {
  return joined({{{"engine", word("des|simgrid|analytic", "des"), "who keeps the time; analytic: as if no two messages shared a link"},
                  {"fold", word("auto|off", "auto"),
       "auto: devices that behave alike are simulated once, to the same\npicosecond; off: every device"},
                  {"calls", word("auto|inline", "auto"),
       "of a schedule with functions. auto: a call is played as one task\nwhere that is exact, and in large models where only memory or cores of\nits devices are shared meanwhile; inline: always task by task, as with\n--explain"},
                  {"force", flag(), "simulate however many task instances there are"}}, threads_option()});
}

const char* words_of_training(const std::vector<std::string>& arguments) {
  const bool reads_keys = std::any_of(arguments.begin(), arguments.end(), [](const std::string& word) { return word == "--maxtext" || word.starts_with("--maxtext="); });
  return reads_keys ? "training" : nullptr;
}

Fields fields_of(const Options& options) {
  Fields fields;
  if (options.caller != nullptr) fields.known = options.caller->known;
  for (const FieldKind& field : scenario_fields()) {
    const std::string name = option_of(field.name);
    if (!options.gives_field(name)) continue;
    if (field.form == FieldKind::Form::flag) fields.set(field.name, "true", option(name));
    for (std::string& text : options.texts(name)) fields.add(field.name, std::move(text), option(name));
  }
  return fields;
}

Expected<Fields> system_fields(const Options& options, const std::string& default_machine) {
  if (options.texts("mesh").size() > 1) return Diagnostic{option("mesh"), "expected one mesh; compare takes several"};
  Fields fields = fields_of(options);
  if (options.has("scenario")) {
    const auto rest = load_scenario(options.text("scenario"));
    if (!rest) return rest.error();
    fields.complete(*rest);
  }
  auto whole = with_plan(std::move(fields));
  if (!whole) return whole;
  Fields otherwise;
  if (!default_machine.empty()) otherwise.set("machine", default_machine, option("machine"));
  return with_module(*std::move(whole), otherwise);
}

Expected<System> system_of(const Options& options, const std::string& default_machine) {
  const auto fields = system_fields(options, default_machine);
  if (!fields) return fields.error();
  return read_system(*fields);
}

Expected<AskedProblem> problem_of(const Fields& fields, DType default_dtype) {
  auto system = read_system(fields);
  if (!system) return system.error();
  auto problem = read_problem(fields, *system, default_dtype);
  if (!problem) return problem.error();
  return AskedProblem{*std::move(system), *std::move(problem)};
}

Expected<AskedProblem> problem_of(const Options& options, DType default_dtype, const std::string& default_machine) {
  const auto fields = system_fields(options, default_machine);
  if (!fields) return fields.error();
  return problem_of(*fields, default_dtype);
}

RunOptions run_options_of(const Console& console, int threads) {
  RunOptions options;
  options.threads = threads;
  options.control.stop = console.interrupted;
  return options;
}

Expected<RunOptions> run_options_of(const Fields& fields, const Options& options, const Console& console) {
  auto how = read_run_options(fields);
  const auto threads = options.integer("threads", 0, 1024);
  if (!threads) return threads.error();
  if (how) how->threads = static_cast<int>(*threads);
  if (how) how->control.stop = console.interrupted;
  return how;
}

Status no_workload_options(const Options& options) {
  for (const char* name : {"only", "batch", "seq", "heads", "kv-heads", "head-dim", "ff", "layers"})
    if (options.given(name)) return Diagnostic{option(name), "belongs to --workload"};
  return success();
}

std::vector<std::string> alignment_notes(const System& system) {
  std::vector<std::string> notes;
  for (const auto& [note, aligned] : misalignments(system))
    notes.push_back(note + (aligned.empty() ? ""
                                            : "; along whole dimensions: " + aligned +
                                                  (system.mesh.axes().size() == 2 ? " (compare --mesh all tries every mesh)" : "")));
  return notes;
}

}  // namespace podsim

#include "tools/command/known_files.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <regex>

#include "sim/base/text.hpp"
#include "sim/base/units.hpp"
#include "sim/config/byte_source.hpp"
#include "sim/config/files.hpp"
#include "sim/config/machine_config.hpp"
#include "sim/config/message_file.hpp"
#include "sim/config/network_config.hpp"
#include "sim/config/result_config.hpp"
#include "sim/config/schedule_config.hpp"
#include "tools/command/gpu_machines.hpp"
#include "tools/page/page.hpp"
#include "tools/page/recorded_result.hpp"
#include "tools/report/shell_word.hpp"
#include "tools/report/table.hpp"
#include "tools/sweep/sweep_file.hpp"
#include "topologies/nccl/nccl_graphs.hpp"
#include "topologies/nccl/nccl_system.hpp"
#include "topologies/nccl/nccl_tuner.hpp"
#include "validation/calibration/importers/import.hpp"
#include "validation/calibration/importers/nsys.hpp"
#include "validation/calibration/importers/profile_operations.hpp"
#include "workloads/chakra/read_chakra.hpp"
#include "workloads/hlo/hlo_proto_text.hpp"
#include "workloads/hlo/hlo_schedule.hpp"
#include "workloads/hlo/read_hlo.hpp"
#include "workloads/msccl/msccl_schedule.hpp"
#include "workloads/scenario/plan_config.hpp"
#include "workloads/scenario/scenario_config.hpp"
#include "workloads/scenario/read_scenario.hpp"
#include "workloads/training/model.hpp"
#include "workloads/transformer.hpp"

namespace podsim {

namespace {

constexpr std::size_t head_bytes = 1 << 16;

bool has(const FileHead& head, std::string_view text) { return head.text.find(text) != std::string::npos; }

/// Of a line of the head, from its first letter.
bool line_begins(const FileHead& head, std::string_view text) {
  for (const std::string& line : split(head.text, '\n'))
    if (trimmed(line).starts_with(text)) return true;
  return false;
}

std::string name_without_gz(std::string path) {
  if (path.ends_with(".gz")) path.resize(path.size() - 3);
  return path;
}

// ---- Compiled modules -------------------------------------------------------------------------------------------------------------------------

bool is_stablehlo(const FileHead& head) { return (has(head, "stablehlo.") || has(head, "mhlo.")) && line_begins(head, "module"); }
bool is_module(const FileHead& head) {
  return line_begins(head, "HloModule ") || (is_hlo_proto(head.text) && !head.text.starts_with("SQLite") && (has(head, "entry") || has(head, "main")) && has(head, "parameter"));
}
constexpr std::string_view any_machine = "MACHINE", usual_machine = "dgx_h100";  // in command lines; where the file tells none
/// Of a text: TPUs lay arrays out in tiles, which their layouts name.
bool compiled_for_gpus(const FileHead& head) { return line_begins(head, "HloModule ") && !has(head, ":T("); }
std::string_view machine_of_module(const FileHead& head) { return compiled_for_gpus(head) ? "h100" : "tpu_v5e"; }
Expected<std::string> module_contents(const std::string& path) {
  const auto module = read_hlo_file(path);
  if (!module) return module.error();
  std::size_t instructions = 0;
  for (const HloComputation& computation : module->computations) instructions += computation.instructions.size();
  return fmt::format("{}, {} instructions in {} computations, read whole, of {} device{}{}{}", module->name, instructions, module->computations.size(), devices_of(*module), devices_of(*module) == 1 ? "" : "s",
                     module->is_scheduled ? "" : ", not scheduled", module->warnings.empty() ? "" : fmt::format(", {} warnings", module->warnings.size()));
}

// ---- Measurements -----------------------------------------------------------------------------------------------------------------------------

bool is_xplane(const FileHead& head) { return name_without_gz(head.path).ends_with(".xplane.pb"); }
bool is_trace_json(const FileHead& head) { return has(head, "\"traceEvents\""); }
bool is_kineto(const FileHead& head) {
  const bool is_named = has(head, "\"deviceProperties\"") || has(head, "\"schemaVersion\"") || has(head, "\"ProfilerStep#");
  return is_trace_json(head) && (is_named || std::regex_search(head.text, std::regex{R"x("cat"\s*:\s*"(cpu_op|cuda_runtime|kernel|Operator|Runtime)")x"}));
}
bool is_gpu_trace_json(const FileHead& head) { return is_trace_json(head) && has(head, "/device:GPU:"); }
/// Anywhere in the file: planes of modules, which are long, may come first.
bool is_gpu_xplane(const FileHead& head) {
  constexpr std::string_view plane = "/device:GPU:";
  if (!is_xplane(head)) return false;
  const auto source = source_of_file(head.path);
  if (!source) return false;
  std::string before;  // the end of the piece before
  while (true) {
    const auto piece = (*source)->next();
    if (!piece || piece->empty()) return false;
    before += *piece;
    if (before.find(plane) != std::string::npos) return true;
    before.erase(0, before.size() - std::min(before.size(), plane.size()));
  }
}
std::string_view form_of_profile(const std::string& path) { return name_without_gz(path).ends_with(".pb") ? "xplane" : is_nsys_export(path) ? "nsys" : "trace-json"; }
/// A shipped machine with the GPU that the profile names, as "NVIDIA H200"; else one of its age.
std::string_view machine_of_profile(const FileHead& head) {
  const auto files = find_profile(head.path, form_of_profile(head.path));
  const auto profile = files ? profile_operations(*files) : Expected<ProfiledOperations>{files.error()};
  if (profile)
    for (const std::string& gpu : profile->machines)
      if (const std::string_view machine = machine_with_gpu(gpu); !machine.empty()) return machine;
  return usual_machine;
}

/// What a profile says that it was measured on, how many steps it has, and their time.
Expected<std::string> profile_contents(const std::string& path) {
  auto files = find_profile(path, form_of_profile(path));
  if (!files) return files.error();
  const auto profile = profile_operations(*files);
  if (!profile) return profile.error();
  return fmt::format("{}{} of {} each, {} operations", profile->machines.empty() ? "" : fmt::format("on {}, ", fmt::join(profile->machines, ", ")), counted(profile->steps, "step"),
                     to_text(profile->time / static_cast<double>(profile->steps)), profile->operations.size());
}
/// Of the formats of measurements (import.hpp), of logs by all of the file.
template <const char* const& format>
bool is_of(const FileHead& head) {
  const auto own = std::ranges::find(import_formats(), format, &ImportFormat::name);
  const ImportFormat* known = format_of(head.text, head.path);
  if (known == nullptr && !head.whole && own->is_in != nullptr)
    if (const auto of_file = format_of_file(head.path)) known = *of_file;
  return known != nullptr && known->name == format;
}
/// What is said of GPUs whose machine podsim has not.
std::string note_on_gpu(std::string_view gpu) { return fmt::format("no shipped machine has the GPUs, {}: {} in the commands stands for a machine of your own (--machine FILE)", gpu, usual_machine); }
template <const char* const& format>
Expected<std::string> rows_of(const std::string& path) {
  auto imported = import_file(format, path);
  if (!imported) return imported.error();
  if (const std::string& gpu = imported->on.gpu; !gpu.empty() && machine_with_gpu(gpu).empty()) imported->notes.push_back(note_on_gpu(gpu));
  return fmt::format("{} measured {}{}{}", imported->observations.size(), imported->observations.size() == 1 ? "row" : "rows", imported->notes.empty() ? "" : "\n  ", fmt::join(imported->notes, "\n  "));
}
constexpr const char *csv = "csv", *nccl_tests = "nccl-tests", *nccl_json = "nccl-json", *nccl_csv = "nccl-csv", *nccl_inspector = "nccl-inspector", *osu = "osu", *perftest = "perftest", *training_log = "training-log";
using Commands = std::vector<std::pair<std::string_view, std::string_view>>;
const Commands& commands_for_collectives() {
  static const Commands all{{"podsim validate --observations {} --machine MACHINE --slice SLICE", "each row beside what a machine predicts; --explain: what would give the measured time"},
                            {"podsim diagnose {} --machine MACHINE --slice SLICE", "what could be wrong with the machine, where its times are too long"},
                            {"podsim calibrate {} --base MACHINE --slice SLICE -o mine.textproto", "a machine that takes the measured times"}};
  return all;
}
constexpr std::string_view any_slice = "SLICE", any_prefix = "PREFIX";  // in command lines
/// Nodes of eight GPUs, or one node.
std::string slice_of(int devices) {
  constexpr int of_node = 8;
  return devices > of_node && devices % of_node == 0 ? fmt::format("{}x{}", devices / of_node, of_node) : fmt::format("1x{}", devices);
}
/// Nodes as the file tells them, else of eight GPUs, for the most devices of a row.
std::string slice_of_rows(const FileHead& head) {
  int devices = 1;
  const auto imported = import_file("", head.path);
  if (imported)
    for (const Observation& row : imported->observations) devices = std::max(devices, row.devices);
  if (imported && imported->on.devices == devices && imported->on.nodes > 0) return fmt::format("{}x{}", imported->on.nodes, devices / imported->on.nodes);
  return slice_of(devices);
}
std::string_view machine_of_rows(const FileHead& head) {
  const auto imported = import_file("", head.path);
  const std::string_view machine = imported ? machine_with_gpu(imported->on.gpu) : std::string_view{};
  return machine.empty() ? usual_machine : machine;
}

// ---- Traces and algorithms of others ------------------------------------------------------------------------------------------------------------

/// "120 collectives: all_gather 64, reduce_scatter 56; 4.2 GB of this rank"
Expected<std::string> pytorch_contents(const std::string& path) {
  const auto text = read_file(path, {most_hlo_bytes});
  if (!text) return text.error();
  const auto trace = parse_chakra(*text, path);
  if (!trace) return trace.error();
  std::map<std::string, int> counts;
  Bytes sum;
  for (const ChakraNode& node : trace->nodes) ++counts[node.name], sum += Bytes{node.comm_size};
  std::vector<std::string> parts;
  for (const auto& [name, count] : counts) parts.push_back(fmt::format("{} {}", name, count));
  return fmt::format("{}: {}; {} of this rank", counted(static_cast<std::int64_t>(trace->nodes.size()), "collective"), fmt::join(parts, ", "), to_text(sum));
}
bool is_chakra(const FileHead& head) { return head.path.ends_with(".et"); }
/// "53 nodes, 21 of them communication"
Expected<std::string> chakra_contents(const std::string& path) {
  const auto bytes = read_file(path, {most_hlo_bytes});
  if (!bytes) return bytes.error();
  const auto trace = parse_chakra(*bytes, path);
  if (!trace) return trace.error();
  const auto communication = std::ranges::count_if(trace->nodes, communicates);
  return fmt::format("{}, {} of them communication", counted(static_cast<std::int64_t>(trace->nodes.size()), "node"), communication);
}
/// "step" of step.3.et; PREFIX of a name without a rank.
std::string prefix_of_traces(const std::string& path) {
  std::smatch parts;
  return std::regex_match(path, parts, std::regex{R"((.+)\.\d+\.et)"}) ? parts[1].str() : std::string{any_prefix};
}
bool is_nccl_topology(const FileHead& head) { return line_begins(head, "<system ") || line_begins(head, "<system>"); }
bool is_nccl_graphs(const FileHead& head) { return line_begins(head, "<graphs ") || line_begins(head, "<graphs>"); }
Expected<NcclSystem> nccl_system(const std::string& path) {
  const auto text = read_file(path, list_limit);
  if (!text) return text.error();
  return read_nccl_system(*text, path);
}
Expected<std::string> nccl_contents(const std::string& path) {
  const auto system = nccl_system(path);
  if (!system) return system.error();
  std::vector<std::string> notes = system->notes;
  if (!system->gcn.empty()) notes.push_back(note_on_gpu("AMD's " + system->gcn));
  return fmt::format("{}{}{}", to_text(*system), notes.empty() ? "" : "\n  ", fmt::join(notes, "\n  "));
}
Expected<std::string> nccl_graphs_contents(const std::string& path) {
  const auto text = read_file(path, list_limit);
  if (!text) return text.error();
  const auto graphs = read_nccl_graphs(*text, path);
  return graphs ? Expected<std::string>{to_text(*graphs)} : Expected<std::string>{graphs.error()};
}
std::string_view machine_of_nccl(const FileHead& head) {
  const auto system = nccl_system(head.path);
  return !system || system->machine.empty() ? usual_machine : system->machine;
}
std::string four_nodes(const FileHead& head) {
  const auto system = nccl_system(head.path);
  return fmt::format("4x{}", system ? system->gpus.size() : 8);
}
bool is_pytorch_et(const FileHead& head) { return trimmed(head.text).starts_with('{') && has(head, "\"schema\"") && (has(head, "chakra") || has(head, "[pytorch|profiler|execution_")); }
bool is_msccl(const FileHead& head) { return line_begins(head, "<algo "); }
/// "all-gather by 16 GPUs, for 1 KiB to 64 KiB"
Expected<std::string> msccl_contents(const std::string& path) {
  const auto algorithm = load_msccl(path);
  if (!algorithm) return algorithm.error();
  const auto kind = msccl_collective_named(algorithm->collective);
  const auto end = [](const std::optional<Bytes>& size, std::string_view none) { return size ? to_exact_text(*size) : std::string{none}; };
  return fmt::format("{}, {} by {} GPUs{}", algorithm->name, kind ? name_of(*kind) : "moves of its own", algorithm->gpus.size(),
                     algorithm->least || algorithm->most ? fmt::format(", taken for {} to {}", end(algorithm->least, "0 B"), end(algorithm->most, "any size")) : "");
}
std::string slice_of_msccl(const FileHead& head) {
  const auto algorithm = load_msccl(head.path);
  return slice_of(algorithm ? static_cast<int>(algorithm->gpus.size()) : 8);
}
/// A line as "allreduce,0,65536,tree,simple,...".
bool is_nccl_tuner(const FileHead& head) {
  return std::regex_search(head.text, std::regex{R"((^|\n)\s*(broadcast|reduce|allgather|reducescatter|allreduce)\s*,\s*\d+\s*,\s*\d+\s*,\s*[a-z_]+\s*,)"});
}
Expected<std::string> nccl_tuner_contents(const std::string& path) {
  const auto text = read_file(path, list_limit);
  if (!text) return text.error();
  const auto rows = read_nccl_tuner(*text, path);
  return rows ? Expected<std::string>{counted(static_cast<std::int64_t>(rows->size()), "line")} : Expected<std::string>{rows.error()};
}
bool is_maxtext(const FileHead& head) {
  return std::regex_search(head.text, std::regex{R"((^|\n)(base_emb_dim|base_num_decoder_layers|ici_fsdp_parallelism|model_name|per_device_batch_size)\s*:)"});
}

// ---- podsim's own -------------------------------------------------------------------------------------------------------------------------------

bool is_nsys(const FileHead& head) { return head.text.starts_with("SQLite format 3") && is_nsys_export(head.path); }
bool is_store(const FileHead& head) { return head.text.starts_with("SQLite format 3"); }
bool is_json_result(const FileHead& head) { return trimmed(head.text).starts_with('{'); }
Expected<std::string> record_contents(const std::string& path) {
  auto source = source_of_file(path);
  if (!source) return source.error();
  const auto bytes = read_all(**source, std::size_t{1} << 30, path);
  if (!bytes) return bytes.error();
  if (const auto kind = kind_of_result(*bytes, path)) return fmt::format("of podsim {}", name_of(*kind));
  const auto record = read_record_or_json(*bytes, path);
  if (!record) return record.error();
  return std::string{"a record"};
}

// ---- Its messages, as text or binary ------------------------------------------------------------------------------------------------------------

/// A message of one kind. Nothing in such a text need say which it is: the reader that takes it tells.
struct Message {
  std::string_view what, field;
  Expected<std::string> (*read)(const std::string& bytes, const std::string& path);
  std::vector<std::pair<std::string_view, std::string_view>> commands;
};

template <class Value>
Expected<std::string> told(const Expected<Value>& read, const std::function<std::string(const Value&)>& tell) {
  if (!read) return read.error();
  return tell(*read);
}

const std::vector<Message>& messages() {
  using Text = const std::string&;
  static const std::vector<Message> all{
      {"a machine", "",
       [](Text bytes, Text path) { return told<Machine>(read_machine(bytes, path), [](const Machine& machine) { return machine.name; }); },
       {{"podsim show machine --machine {}", "its values, each with its source"}, {"podsim run all-reduce --bytes 64M --machine {} --slice 4x4", "a collective on it"}}},
      {"a schedule", "schedule",
       [](Text bytes, Text path) {
         return told<Schedule>(read_schedule(bytes, path), [](const Schedule& schedule) { return fmt::format("{}, {} {} on the mesh {}", schedule.name, schedule.programs.size(), schedule.programs.size() == 1 ? "program" : "programs", to_text(schedule.mesh)); });
       },
       {{"podsim run schedule {} --machine tpu_v4", "its time"}, {"podsim check schedule {} --machine tpu_v4", "whether it is right, and free of races"}, {"podsim show schedule --schedule {}", "its tasks"}}},
      {"a plan of a block", "plan",
       [](Text bytes, Text path) { return told<SavedPlan>(read_plan(bytes, path), [](const SavedPlan& plan) { return plan.workload.name; }); },
       {{"podsim run plan {} --explain", "its time, and what bounds it"}, {"podsim show plan {} --jax", "the PartitionSpecs that it stands for"}}},
      {"a sweep", "",
       [](Text bytes, Text path) {
         return told<std::vector<SweepBlock>>(read_sweep(bytes, path), [](const std::vector<SweepBlock>& blocks) { return fmt::format("{} {}", blocks.size(), blocks.size() == 1 ? "block" : "blocks"); });
       },
       {{"podsim sweep {} --store results.sqlite", "simulates every combination"}, {"podsim sweep {} --format csv -o results.csv", "the same, as a table"}}},
      {"a model to train", "training",
       [](Text bytes, Text path) { return told<TrainingModel>(read_training_model(bytes, path), [](const TrainingModel& model) { return fmt::format("{}, {} layers", model.name, model.layers); }); },
       {{"podsim show training {}", "its parameters, FLOPs and memory"},
        {"podsim run training {} --machine h100 --slice 8x8 --batch 64 --remat full", "the time of a step"},
        {"podsim tune --training {} --machine h100 --chips 64", "the best mesh for it"}}},
      {"a transformer block", "workload",
       [](Text bytes, Text path) { return told<TransformerBlock>(read_transformer_block(bytes, path), [](const TransformerBlock& block) { return block.name; }); },
       {{"podsim tune --workload {} --machine tpu_v4 --chips 64", "the best mesh and algorithms for it"}}},
      {"a network of chips, switches and cables", "",
       [](Text bytes, Text path) { return told<Network>(read_network(bytes, path), [](const Network& network) { return fmt::format("{} chips", network.chips()); }); },
       {{"podsim show topology --topology {} --machine tpu_v4", "its links, distances and bisection"}, {"podsim run all-reduce --bytes 64M --topology {} --machine tpu_v4", "a collective on it"}}},
      {"a scenario", "",
       [](Text bytes, Text path) {
         return told<Fields>(read_scenario(bytes, path), [](const Fields& fields) { return fmt::format("{} {}", fields.given().size(), fields.given().size() == 1 ? "field" : "fields"); });
       },
       {{"podsim run --scenario {}", "what it asks for"}, {"podsim check --scenario {}", "whether that computes what it should"}}},
      {"the result of a run", "",
       [](Text bytes, Text path) { return told<Result>(read_result(bytes, path), [](const Result& result) { return time_text(result.makespan_s); }); },
       {{"podsim report {}", "a page about it"}}},
  };
  return all;
}

/// The kind of a message, and what is in it. Errors: of the reader that came furthest.
struct ReadMessage {
  const Message* kind = nullptr;
  std::string contents;
};
Expected<ReadMessage> read_message(const std::string& path) {
  const auto bytes = read_file(path, schedule_limit);
  if (!bytes) return bytes.error();
  std::optional<Diagnostic> furthest;
  for (const Message& message : messages()) {
    auto contents = message.read(*bytes, path);
    if (contents) return ReadMessage{&message, *std::move(contents)};
    const SourceLocation& where = contents.error().where;
    if (!furthest || std::pair{where.line, where.column} > std::pair{furthest->where.line, furthest->where.column}) {
      furthest = contents.error();
      furthest->message += fmt::format(" (read as {}, which comes closest)", message.what);
    }
  }
  return *furthest;
}

bool is_message(const FileHead& head) {
  return head.path.ends_with(".textproto") || head.path.ends_with(".pb") || has(head, "# proto-message: podsim.proto.") || head.text.starts_with(binary_magic);
}

/// Words of command lines, and what stands for them.
using Words = std::vector<std::pair<std::string_view, std::string>>;

std::string with_words(std::string text, const Words& words) {
  for (const auto& [word, by] : words)
    for (std::size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + by.size())) text.replace(at, word.size(), by);
  return text;
}

std::string commands_text(const Commands& commands, const std::string& path, const Words& words = {}) {
  std::string text;
  for (const auto& [command, tells] : commands) {
    std::string line = with_words(std::string{command}, words);
    if (const std::size_t at = line.find("{}"); at != std::string::npos) line.replace(at, 2, shell_word(path));
    text += fmt::format("  {}\n      {}\n", line, with_words(std::string{tells}, words));
  }
  return text;
}

}  // namespace

const std::vector<KnownFile>& known_files() {
  static const std::vector<KnownFile> all{
      {"StableHLO, which XLA has not compiled yet: it holds no schedule and, before partitioning, no collectives", "", &is_stablehlo, nullptr,
       {{"python3 -c 'open(\"step.hlo\", \"w\").write(jax.jit(f).lower(*args).compile().as_text())'", "compiles it, from where f and args are known"},
        {"podsim run module step.hlo --machine MACHINE", "then its time"}}},
      {"a profile of XProf, of GPUs", "", &is_gpu_xplane, &profile_contents,
       {{"podsim diff --measured {} --hlo step.hlo --machine MACHINE", "where the step is slower than its module should be: kernels by instruction and by category"}},
       &machine_of_profile},
      {"a profile of XProf", "", &is_xplane, nullptr,
       {{"podsim diff --measured {} --hlo step.hlo --machine tpu_v5e", "where the step is slower than its module should be"},
        {"podsim calibrate --from xplane {} --base tpu_v5e -o mine.textproto", "a machine that takes the measured times"}}},
      {"a module that XLA compiled", "hlo", &is_module, &module_contents,
       {{"podsim run module {} --machine MACHINE", "its time on that machine, and what is exposed"},
        {"podsim show hlo {}", "what it does: collectives, FLOPs, memory"},
        {"podsim compare {} new.hlo --machine MACHINE", "what a change of the program made of it: time, memory and collectives of this module and of the new one"},
        {"podsim run module {} --machine MACHINE --record step.record && podsim report step.record", "a page about it"}},
       &machine_of_module},
      {"a trace of PyTorch's profiler", "", &is_kineto, &profile_contents,
       {{"podsim run training llama3-8b --machine MACHINE --slice 1x8 --batch 8 --format json -o run.json && podsim diff --measured {} run.json", "where the step differs from a predicted one, by category"}},
       &machine_of_profile},
      {"a trace of events in JSON, as Perfetto shows, of GPUs", "", &is_gpu_trace_json, &profile_contents,
       {{"podsim diff --measured {} --hlo step.hlo --machine MACHINE", "where the step is slower than its module should be: kernels by instruction and by category"}},
       &machine_of_profile},
      {"a trace of events in JSON, as Perfetto shows", "", &is_trace_json, nullptr,
       {{"podsim diff --measured {} --hlo step.hlo --machine tpu_v5e", "where the step is slower than its module should be"},
        {"podsim calibrate --from trace-json {} --base tpu_v5e -o mine.textproto", "a machine that takes the measured times"}}},
      {"a log of nccl-tests", "", &is_of<nccl_tests>, &rows_of<nccl_tests>, commands_for_collectives(), &machine_of_rows, &slice_of_rows},
      {"results of nccl-tests or rccl-tests as JSON", "", &is_of<nccl_json>, &rows_of<nccl_json>, commands_for_collectives(), &machine_of_rows, &slice_of_rows},
      {"what NCCL's inspector wrote of a rank", "", &is_of<nccl_inspector>, &rows_of<nccl_inspector>, commands_for_collectives(), &machine_of_rows, &slice_of_rows},
      {"results of rccl-tests as CSV", "", &is_of<nccl_csv>, &rows_of<nccl_csv>, commands_for_collectives(), &machine_of_rows, &slice_of_rows},
      {"results of the OSU micro-benchmarks", "", &is_of<osu>, &rows_of<osu>, commands_for_collectives(), &machine_of_rows, &slice_of_rows},
      {"results of perftest between two network interfaces", "", &is_of<perftest>, &rows_of<perftest>,
       {{"podsim validate --observations {} --machine dgx_h100 --slice 2x1", "each row beside what a machine predicts"},
        {"podsim calibrate {} --base dgx_h100 --slice 2x1 -o mine.textproto", "a machine that takes the measured times"}}},
      {"a log of a training run", "", &is_of<training_log>, &rows_of<training_log>,
       {{"podsim calibrate {} --steps STEPS.textproto --base dgx_h100 --slice 8x8 -o mine.textproto", "a machine that takes the measured time for the step that STEPS.textproto describes (docs/calibration.md)"}}},
      {"observations", "", &is_of<csv>, &rows_of<csv>,
       {{"podsim calibrate --observations {} --base tpu_v4 -o mine.textproto", "a machine that takes the measured times"},
        {"podsim validate --observations {} --machine tpu_v4", "how far a machine is off"}}},
      {"an algorithm of MSCCL", "msccl", &is_msccl, &msccl_contents,
       {{"podsim run msccl {} --bytes 3M --machine h100 --slice SLICE", "its time"},
        {"podsim check msccl {} --bytes 3M --machine h100 --slice SLICE", "whether it computes what it says"},
        {"podsim compare --msccl {} --bytes 48K,3M,48M --machine h100 --slice SLICE", "its time by size, for the sizes that it is taken for"}},
       nullptr, &slice_of_msccl},
      {"a table of NCCL's example tuner plugin", "", &is_nccl_tuner, &nccl_tuner_contents,
       {{"podsim run all-reduce --bytes 64M --machine dgx_h100 --slice 1x8 --nccl-tuner {}", "the time of the algorithm that it chooses"},
        {"podsim compare all-reduce --bytes 64K..1G:4 --machine dgx_h100 --slice 1x8 --write-nccl-tuner tuner.conf", "what podsim would choose"}}},
      {"a node's topology as NCCL describes it", "", &is_nccl_topology, &nccl_contents,
       {{"podsim show topology {} --machine MACHINE", "its links and bandwidths"},
        {"podsim run all-reduce --bytes 1G --topology {} --machine MACHINE", "a collective on it"},
        {"podsim run all-reduce --bytes 1G --topology {} --machine MACHINE --slice SLICE", "on four such nodes, whose network interfaces of one number are joined by a rail"}},
       &machine_of_nccl, &four_nodes},
      {"the rings and trees that NCCL found (NCCL_GRAPH_DUMP_FILE): podsim takes the topology that they were found on, NCCL_TOPO_DUMP_FILE", "", &is_nccl_graphs, &nccl_graphs_contents, {}},
      {"an execution trace of PyTorch (ExecutionTraceObserver), without times: podsim plays its collectives alone, or all of it as the Chakra trace that MLCommons' tools make of it and of the profiler's trace of the same rank", "", &is_pytorch_et, &pytorch_contents,
       {{"cp {} step.0.et && podsim run chakra step --machine dgx_h100 --slice 1x8", "the time of its collectives, one after the other; step.1.et, .. are those of the other ranks"},
        {"chakra_trace_link --rank 0 --chakra-host-trace {} --chakra-device-trace rank0.pt.trace.json --output-file linked.json && chakra_converter PyTorch --input linked.json --output step.0.et", "makes it, from rank0.pt.trace.json of torch.profiler"},
        {"podsim run chakra step --machine dgx_h100 --slice 1x8", "then its time, of step.0.et, step.1.et, ..."}}},
      {"a Chakra execution trace of one rank", "", &is_chakra, &chakra_contents,
       {{"podsim run chakra PREFIX --machine tpu_v5e", "the time of PREFIX.0.et, PREFIX.1.et, ..."}}},
      {"an export of Nsight Systems", "", &is_nsys, &profile_contents,
       {{"podsim diff --measured {} --from nsys --hlo step.hlo --machine MACHINE", "where the step is slower than its module should be, by category"},
        {"podsim run training llama3-8b --machine MACHINE --slice 1x8 --batch 8 --format json -o run.json && podsim diff --measured {} --from nsys run.json", "where the step differs from a predicted one, by category"}},
       &machine_of_profile},
      {"a store of podsim sweep, or another SQLite database", "", &is_store, nullptr, {{"podsim report {}", "a page about its results"}, {"podsim sweep --store {} --export csv", "them as a table"}}},
      {"a message of podsim", "", &is_message, nullptr, {}},
      {"a record or result of podsim", "", &is_json_result, &record_contents, {{"podsim report {}", "a page about it"}, {"podsim show timeline {}", "what a device does when"}}},
      {"a configuration of MaxText", "", &is_maxtext, nullptr,
       {{"podsim run training --maxtext {} --machine tpu_v5p --slice 4x4x4", "the time of its training step"}, {"podsim tune --maxtext {} --machine tpu_v5p --chips 64", "the best mesh for it"}}},
  };
  return all;
}

std::vector<std::string_view> suggested_commands() {
  std::vector<std::string_view> commands;
  for (const KnownFile& kind : known_files())
    for (const auto& [command, tells] : kind.commands) commands.push_back(command);
  for (const Message& message : messages())
    for (const auto& [command, tells] : message.commands) commands.push_back(command);
  return commands;
}

Expected<FileHead> head_of(const std::string& path) {
  auto source = source_of_file(path);
  if (!source) return source.error();
  FileHead head{path, "", true};
  while (head.text.size() < head_bytes) {
    const auto more = (*source)->next();
    if (!more) return more.error();
    if (more->empty()) return head;
    head.text += *more;
  }
  head.whole = false;
  head.text.resize(head_bytes);
  return head;
}

const KnownFile* known_file(const FileHead& head) {
  const auto& kinds = known_files();
  const auto found = std::ranges::find_if(kinds, [&](const KnownFile& kind) { return kind.is(head); });
  return found == kinds.end() ? nullptr : &*found;
}

Expected<std::string> about_file(const std::string& path) {
  const auto head = head_of(path);
  if (!head) return head.error();
  const KnownFile* kind = known_file(*head);
  if (kind == nullptr) {
    const std::string first = split(head->text, '\n').front();
    return Diagnostic{{path, 1, 1}, fmt::format("expected a file that podsim knows (a compiled module, a profile, a log of nccl-tests, observations, an algorithm of MSCCL, Chakra traces, a machine, "
                                                "model, plan, scenario or sweep, a result), found {}",
                                                head->text.empty() ? "an empty file" : quoted(first.substr(0, 60)))};
  }
  if (kind->is == &is_message) {
    const auto message = read_message(path);
    if (!message) return message.error();
    return fmt::format("{}: {}: {}\n{}", path, message->kind->what, message->contents, commands_text(message->kind->commands, path));
  }
  std::string contents;
  if (kind->contents != nullptr) {
    auto read = kind->contents(path);
    if (!read) return read.error();
    contents = ": " + *std::move(read);
  }
  Words words;
  if (kind->machine != nullptr) words.emplace_back(any_machine, kind->machine(*head));
  if (kind->slice != nullptr) words.emplace_back(any_slice, kind->slice(*head));
  if (kind->is == &is_chakra) words.emplace_back(any_prefix, shell_word(prefix_of_traces(path)));
  return fmt::format("{}: {}{}\n{}", path, kind->what, contents, commands_text(kind->commands, path, words));
}

}  // namespace podsim

#include "workloads/hlo/hlo_proto_text.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <unordered_map>
#include <unordered_set>

#include "workloads/hlo/hlo_cursor.hpp"
#include "workloads/hlo/hlo_proto_attributes.hpp"
#include "workloads/hlo/hlo_proto_values.hpp"
#include "workloads/hlo/hlo_shape.hpp"
#include "workloads/hlo/xla_hlo.pb.h"

namespace podsim {

namespace {

constexpr int deepest_async = 8;

bool is_name(std::string_view name) {
  HloCursor cursor{name, 0, {}};
  return !name.empty() && cursor.take_name().size() == name.size();
}

constexpr std::string_view start_suffix = "-start";

class ModuleText {
 public:
  ModuleText(const xla::HloModule& module, const std::string& file, std::size_t most) : module_{module}, file_{file}, most_{most} {}

  Expected<HloProtoText> write() {
    if (!index_all() || !header()) return *error_;
    for (const xla::HloComputation& computation : module_.computations())
      if (!is_sugar(computation) && !write_computation(computation)) return *error_;
    return std::move(out_);
  }

 private:
  using Instructions = std::unordered_map<std::int64_t, const xla::HloInstruction*>;

  bool fail(std::string message) {
    if (!error_) error_ = Diagnostic{place_.empty() ? SourceLocation{file_, 1, 1} : SourceLocation{file_ + ": " + place_}, std::move(message)};
    return false;
  }
  void line(std::string text, std::string_view of) {
    std::ranges::replace(text, '\n', ' ');  // of words that should have none
    out_.text += text += '\n';
    out_.lines.emplace_back(of);
  }

  bool index_all() {
    for (const xla::HloComputation& computation : module_.computations()) {
      place_ = "computation " + quoted(computation.name());
      if (!is_name(computation.name())) return fail("expected the name of a computation");
      if (!computations_.emplace(computation.id(), &computation).second)
        return fail(fmt::format("expected the number {} of a computation once", computation.id()));
      Instructions& instructions = instructions_[&computation];
      for (const xla::HloInstruction& instruction : computation.instructions()) {
        place_ = "instruction " + quoted(instruction.name());
        if (!is_name(instruction.name())) return fail("expected the name of an instruction");
        if (!instructions.emplace(instruction.id(), &instruction).second)
          return fail(fmt::format("expected the number {} of an instruction once", instruction.id()));
      }
    }
    for (const auto& entry : module_.schedule().sequences()) sequences_.emplace(entry.key(), &entry.value());
    // Computations that stand in the names of what starts them.
    for (const xla::HloComputation& computation : module_.computations())
      for (const xla::HloInstruction& instruction : computation.instructions())
        if (instruction.opcode() == "async-start" && wrapped_in(instruction) != nullptr)
          sugar_.insert(computations_.at(instruction.called_computation_ids(0)));
    place_.clear();
    return true;
  }

  /// The one instruction that an async-start runs, if there is but one.
  const xla::HloInstruction* wrapped_in(const xla::HloInstruction& start) const {
    if (start.called_computation_ids_size() != 1) return nullptr;
    const auto found = computations_.find(start.called_computation_ids(0));
    if (found == computations_.end()) return nullptr;
    const xla::HloInstruction* root = nullptr;
    for (const xla::HloInstruction& instruction : found->second->instructions()) {
      if (instruction.id() == found->second->root_id())
        root = &instruction;
      else if (instruction.opcode() != "parameter")
        return nullptr;
    }
    return root != nullptr && root->opcode() != "parameter" ? root : nullptr;
  }
  bool is_sugar(const xla::HloComputation& computation) const { return sugar_.contains(&computation); }

  /// The start of an async-update or async-done.
  const xla::HloInstruction* start_of(const Instructions& known, const xla::HloInstruction& instruction) const {
    const xla::HloInstruction* at = &instruction;
    for (int depth = 0; depth < deepest_async && at->operand_ids_size() > 0; ++depth) {
      const auto found = known.find(at->operand_ids(0));
      if (found == known.end()) return nullptr;
      at = found->second;
      if (at->opcode() == "async-start") return at;
    }
    return nullptr;
  }

  bool header() {
    std::string name = module_.name();
    if (name.empty() || name.find_first_of(", \t\r\n") != std::string::npos) return fail("expected the name of a module, found " + quoted(name));
    std::string text = "HloModule " + name;
    if (module_.has_schedule()) text += ", is_scheduled=true";
    const auto index = [](const auto& numbers) { return fmt::format("{{{}}}", fmt::join(numbers, ", ")); };
    std::vector<std::string> aliases, donors;
    for (const auto& alias : module_.input_output_alias().entries())
      aliases.push_back(fmt::format("{}: ({}, {}, {})", index(alias.output_shape_index()), alias.parameter_number(),
                                    index(alias.parameter_shape_index()), alias.kind() == 2 ? "must-alias" : "may-alias"));
    if (!aliases.empty()) text += fmt::format(", input_output_alias={{ {} }}", fmt::join(aliases, ", "));
    for (const auto& donor : module_.buffer_donor().entries())
      donors.push_back(fmt::format("({}, {})", donor.parameter_number(), index(donor.parameter_shape_index())));
    if (!donors.empty()) text += fmt::format(", buffer_donor={{ {} }}", fmt::join(donors, ", "));
    if (module_.device_assignment().replica_count() > 1) text += fmt::format(", replica_count={}", module_.device_assignment().replica_count());
    if (module_.device_assignment().computation_count() > 1)
      text += fmt::format(", num_partitions={}", module_.device_assignment().computation_count());
    if (!module_.frontend_attributes().map().empty()) text += ", frontend_attributes=" + frontend_text(module_.frontend_attributes());
    line(text, "");
    line("", "");
    write_source_lines();
    return true;
  }

  void write_source_lines() {
    const xla::StackFrameIndex& index = module_.stack_frame_index();
    const auto table = [this](const char* name, const auto& rows, const auto& row_text) {
      if (rows.empty()) return;
      line(name, "");
      for (int r = 0; r < rows.size(); ++r) line(fmt::format("{} {}", r + 1, row_text(rows[r])), "");
      line("", "");
    };
    table("FileNames", index.file_names(), [](const std::string& name) { return in_quotes(name); });
    table("FileLocations", index.file_locations(), [](const auto& location) { return fmt::format("{{file_name_id={} line={}}}", location.file_name_id(), location.line()); });
    table("StackFrames", index.stack_frames(), [](const auto& frame) { return fmt::format("{{file_location_id={} parent_frame_id={}}}", frame.file_location_id(), frame.parent_frame_id() + 1); });
  }

  static std::string metadata_text(const xla::OpMetadata& metadata) {
    std::string text;
    if (!metadata.op_name().empty()) text += " op_name=" + in_quotes(metadata.op_name());
    if (!metadata.source_file().empty()) text += fmt::format(" source_file={} source_line={}", in_quotes(metadata.source_file()), metadata.source_line());
    if (metadata.stack_frame_id() != 0) text += fmt::format(" stack_frame_id={}", metadata.stack_frame_id());
    return text.empty() ? text : fmt::format(", metadata={{{}}}", text.substr(1));
  }

  bool write_computation(const xla::HloComputation& computation) {
    const bool is_entry = module_.entry_computation_id() != 0 ? computation.id() == module_.entry_computation_id()
                                                              : computation.name() == module_.entry_computation_name();
    line(fmt::format("{}%{} {{", is_entry ? "ENTRY " : "", computation.name()), computation.name());
    const Instructions& known = instructions_.at(&computation);
    const auto sequence = sequences_.find(computation.id());
    if (sequence == sequences_.end()) {
      for (const xla::HloInstruction& instruction : computation.instructions())
        if (!write_instruction(computation, known, instruction)) return false;
    } else {
      place_ = "computation " + quoted(computation.name());
      std::unordered_set<std::int64_t> written;
      for (const std::int64_t id : sequence->second->instruction_ids()) {
        const auto found = known.find(id);
        if (found == known.end()) return fail(fmt::format("expected a schedule of its instructions, found the number {}", id));
        if (!written.insert(id).second)
          return fail(fmt::format("expected every instruction once in the schedule, found {} again", quoted(found->second->name())));
        if (!write_instruction(computation, known, *found->second)) return false;
      }
      if (written.size() != known.size())
        return fail(fmt::format("expected a schedule of its {} instructions, found {}", known.size(), written.size()));
    }
    line(computation.execution_thread().empty() || computation.execution_thread() == "main"
             ? "}"
             : "}, execution_thread=" + in_quotes(computation.execution_thread()),
         computation.name());
    line("", "");
    return true;
  }

  bool write_instruction(const xla::HloComputation& computation, const Instructions& known, const xla::HloInstruction& instruction) {
    place_ = "instruction " + quoted(instruction.name());
    const std::string& opcode = instruction.opcode();
    if (!is_name(opcode)) return fail("expected the name of an opcode, found " + quoted(opcode));
    std::string text = fmt::format("  {}%{} = ", instruction.id() == computation.root_id() ? "ROOT " : "", instruction.name());
    const auto shape = shape_of_proto(instruction.shape());
    if (!shape) return fail(shape.error().message);
    text += to_text(*shape);
    // async-start of one instruction is written as that instruction's start.
    const xla::HloInstruction* wrapped = nullptr;
    std::string suffix;
    if (opcode.starts_with("async-")) {
      const xla::HloInstruction* start = opcode == "async-start" ? &instruction : start_of(known, instruction);
      if (start != nullptr) wrapped = wrapped_in(*start);
      suffix = opcode.substr(std::string_view{"async"}.size());
    }
    text += fmt::format(" {}(", wrapped != nullptr ? wrapped->opcode() + suffix : opcode);
    if (!operands(known, instruction, *shape, text)) return false;
    text += ')';
    if (wrapped != nullptr) {
      if (suffix == start_suffix && !attributes(*wrapped, text)) return false;
    } else if (!attributes(instruction, text)) {
      return false;
    }
    if (!instruction.async_execution_thread().empty() && instruction.async_execution_thread() != "main")
      text += ", async_execution_thread=" + in_quotes(instruction.async_execution_thread());
    if (instruction.has_sharding()) text += ", sharding=" + sharding_text(instruction.sharding());
    if (!instruction.frontend_attributes().map().empty()) text += ", frontend_attributes=" + frontend_text(instruction.frontend_attributes());
    if (!references(known, instruction.control_predecessor_ids(), text)) return false;
    text += metadata_text(instruction.metadata());
    if (!instruction.backend_config().empty()) text += ", backend_config=" + in_quotes(instruction.backend_config());
    line(text, instruction.name());
    return out_.text.size() <= most_ || fail(fmt::format("expected a module whose text has at most {} bytes", most_));
  }

  bool operands(const Instructions& known, const xla::HloInstruction& instruction, const HloShape& shape, std::string& text) {
    if (instruction.opcode() == "parameter") {
      text += std::to_string(instruction.parameter_number());
      return true;
    }
    if (instruction.opcode() == "constant") {
      text += literal_text(instruction.literal(), shape);
      return true;
    }
    for (int i = 0; i < instruction.operand_ids_size(); ++i) {
      const auto found = known.find(instruction.operand_ids(i));
      if (found == known.end()) return fail(fmt::format("expected operands in its computation, found the number {}", instruction.operand_ids(i)));
      text += fmt::format("{}%{}", i > 0 ? ", " : "", found->second->name());
      if (text.size() > most_) return fail(fmt::format("expected a module whose text has at most {} bytes", most_));
    }
    return true;
  }

  bool references(const Instructions& known, const google::protobuf::RepeatedField<std::int64_t>& ids, std::string& text) {
    if (ids.empty()) return true;
    std::vector<std::string_view> names;
    for (const std::int64_t id : ids) {
      const auto found = known.find(id);
      if (found == known.end()) return fail(fmt::format("expected predecessors in its computation, found the number {}", id));
      names.push_back(found->second->name());
    }
    text += fmt::format(", control-predecessors={{%{}}}", fmt::join(names, ", %"));
    return true;
  }

  bool attributes(const xla::HloInstruction& instruction, std::string& text) {
    const auto written = attributes_of_proto(instruction);
    if (!written) return fail(written.error().message);
    text += *written;
    return calls(instruction, text);
  }

  bool calls(const xla::HloInstruction& instruction, std::string& text) {
    std::vector<std::string> names;
    for (const std::int64_t id : instruction.called_computation_ids()) {
      const auto found = computations_.find(id);
      if (found == computations_.end()) return fail(fmt::format("expected computations of the module, found the number {}", id));
      names.push_back('%' + found->second->name());
    }
    if (names.empty()) return true;
    const std::string& opcode = instruction.opcode();
    const auto wanted = [&](std::size_t count) {
      return names.size() == count || fail(fmt::format("expected {} computations that a {} calls, found {}", count, opcode, names.size()));
    };
    if (opcode == "while") {
      if (!wanted(2)) return false;
      text += fmt::format(", condition={}, body={}", names[1], names[0]);
    } else if (opcode == "conditional") {
      text += fmt::format(", branch_computations={{{}}}", fmt::join(names, ", "));
    } else if (opcode == "select-and-scatter") {
      if (!wanted(2)) return false;
      text += fmt::format(", select={}, scatter={}", names[0], names[1]);
    } else if (opcode == "custom-call") {
      text += fmt::format(", called_computations={{{}}}", fmt::join(names, ", "));
    } else {
      if (!wanted(1)) return false;
      text += fmt::format(", {}={}", opcode == "fusion" || opcode.starts_with("async-") ? "calls" : "to_apply", names[0]);
    }
    return true;
  }

  const xla::HloModule& module_;
  const std::string& file_;
  std::size_t most_;
  HloProtoText out_;
  std::unordered_map<std::int64_t, const xla::HloComputation*> computations_;
  std::unordered_map<const xla::HloComputation*, Instructions> instructions_;
  std::unordered_map<std::int64_t, const xla::HloSchedule::InstructionSequence*> sequences_;
  std::unordered_set<const xla::HloComputation*> sugar_;
  std::string place_;
  std::optional<Diagnostic> error_;
};

}  // namespace

bool is_hlo_proto(std::string_view bytes) {
  constexpr std::size_t looked_at = 4096;
  const std::string_view first = bytes.substr(0, looked_at);
  return std::ranges::any_of(first, [](char c) { return static_cast<unsigned char>(c) < ' ' && c != '\n' && c != '\r' && c != '\t' && c != '\f'; });
}

Expected<HloProtoText> text_of_hlo_proto(std::string_view bytes, const std::string& file, std::size_t most) {
  const auto size = static_cast<int>(std::min<std::size_t>(bytes.size(), std::numeric_limits<int>::max()));
  // Both begin with their field 1: of a file a module, of a module its name.
  xla::HloFile whole;
  if (whole.ParseFromArray(bytes.data(), size) && whole.hlo_module().computations_size() > 0)
    return ModuleText{whole.hlo_module(), file, most}.write();
  xla::HloModule module;
  if (module.ParseFromArray(bytes.data(), size) && module.computations_size() > 0) return ModuleText{module, file, most}.write();
  return Diagnostic{{file, 1, 1}, "expected a module: text that begins with \"HloModule\", or an HloProto or HloModuleProto"};
}

}  // namespace podsim

#include "workloads/hlo/hlo_proto_text.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>
#include <unordered_map>
#include <unordered_set>

#include "workloads/hlo/hlo_cursor.hpp"
#include "workloads/hlo/hlo_shape.hpp"
#include "workloads/hlo/replica_groups.hpp"
#include "workloads/hlo/xla_hlo.pb.h"

namespace podsim {

namespace {

constexpr std::int64_t most_listed_devices = std::int64_t{1} << 24, most_literal_numbers = std::int64_t{1} << 20;  // as the text's reader takes
constexpr int deepest_proto_tuple = 64, deepest_async = 8;
constexpr std::size_t most_dimensions = 64;

/// PrimitiveType
std::optional<HloType> type_numbered(int number) {
  using T = HloType;
  static const std::unordered_map<int, HloType> types{{1, T::pred},
                                                      {2, T::s8},
                                                      {3, T::s16},
                                                      {4, T::s32},
                                                      {5, T::s64},
                                                      {6, T::u8},
                                                      {7, T::u16},
                                                      {8, T::u32},
                                                      {9, T::u64},
                                                      {10, T::f16},
                                                      {11, T::f32},
                                                      {12, T::f64},
                                                      {13, T::tuple},
                                                      {14, T::opaque},
                                                      {15, T::c64},
                                                      {16, T::bf16},
                                                      {17, T::token},
                                                      {18, T::c128},
                                                      {19, T::f8e5m2},
                                                      {20, T::f8e4m3fn},
                                                      {21, T::s4},
                                                      {22, T::u4},
                                                      {23, T::f8e4m3b11fnuz},
                                                      {24, T::f8e5m2fnuz},
                                                      {25, T::f8e4m3fnuz},
                                                      {26, T::s2},
                                                      {27, T::u2},
                                                      {28, T::f8e4m3},
                                                      {29, T::f8e3m4},
                                                      {30, T::s1},
                                                      {31, T::u1},
                                                      {32, T::f4e2m1fn},
                                                      {33, T::f8e8m0fnu}};
  const auto found = types.find(number);
  if (found == types.end()) return std::nullopt;
  return found->second;
}

bool is_name(std::string_view name) {
  HloCursor cursor{name, 0, {}};
  return !name.empty() && cursor.take_name().size() == name.size();
}

std::string in_quotes(std::string_view text) {
  std::string escaped = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') escaped += '\\';
    if (c == '\n')
      escaped += "\\n";
    else
      escaped += c;
  }
  return escaped + '"';
}

/// A list in braces.
template <class Numbers>
std::string in_braces(const Numbers& numbers) {
  return fmt::format("{{{}}}", fmt::join(numbers, ","));
}

/// {k=v,...} in the order of the keys. XLA writes a value in braces as it is, others in quotation marks.
std::string frontend_text(const xla::FrontendAttributes& attributes) {
  std::vector<std::pair<std::string, std::string>> entries;
  for (const auto& entry : attributes.map()) entries.emplace_back(entry.key(), entry.value());
  std::sort(entries.begin(), entries.end());
  std::string text;
  for (const auto& [key, value] : entries) {
    HloCursor cursor{value, 0, {}};
    const bool braces = value.starts_with('{') && value.find('\n') == std::string::npos && cursor.take_balanced() && cursor.ended();
    text += fmt::format("{}{}={}", text.empty() ? "" : ",", key, braces ? value : in_quotes(value));
  }
  return '{' + text + '}';
}

std::string index_text(const google::protobuf::RepeatedField<std::int64_t>& index) { return fmt::format("{{{}}}", fmt::join(index, ", ")); }

std::string sharding_text(const xla::OpSharding& sharding) {
  // OpSharding::Type
  switch (sharding.type()) {
    case 0: return "{replicated}";
    case 1: return fmt::format("{{maximal device={}}}", sharding.tile_assignment_devices().empty() ? 0 : sharding.tile_assignment_devices(0));
    case 2: {
      std::vector<std::string> elements;
      for (const xla::OpSharding& element : sharding.tuple_shardings()) elements.push_back(sharding_text(element));
      return fmt::format("{{{}}}", fmt::join(elements, ", "));
    }
    case 3: break;
    case 4: return "{manual}";
    case 6: return "{unreduced}";
    default: return "{unknown}";
  }
  std::string text = fmt::format("{{devices=[{}]", fmt::join(sharding.tile_assignment_dimensions(), ","));
  if (sharding.iota_reshape_dims().empty()) {
    text += fmt::format("{}", fmt::join(sharding.tile_assignment_devices(), ","));
  } else {
    text += fmt::format("<=[{}]", fmt::join(sharding.iota_reshape_dims(), ","));
    if (!std::ranges::is_sorted(sharding.iota_transpose_perm())) text += fmt::format("T({})", fmt::join(sharding.iota_transpose_perm(), ","));
  }
  if (sharding.replicate_on_last_tile_dim()) text += " last_tile_dim_replicate";
  constexpr std::array<std::string_view, 7> names{"replicated", "maximal", "tuple", "other", "manual", "unknown", "unreduced"};
  std::vector<std::string_view> last;
  for (const int type : sharding.last_tile_dims())
    last.push_back(type >= 0 && static_cast<std::size_t>(type) < names.size() ? names[static_cast<std::size_t>(type)] : "unknown");
  if (!last.empty()) text += fmt::format(" last_tile_dims={{{}}}", fmt::join(last, ", "));
  return text + '}';
}

/// Two bytes of a little-endian array.
std::uint16_t half_word(const std::string& bytes, std::size_t at) {
  return static_cast<std::uint16_t>(static_cast<unsigned char>(bytes[2 * at]) | static_cast<unsigned char>(bytes[2 * at + 1]) << 8);
}
float bf16_of(std::uint16_t bits) { return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16); }
float f16_of(std::uint16_t bits) {
  const int exponent = bits >> 10 & 31, fraction = bits & 1023;
  const float magnitude = exponent == 31  ? (fraction == 0 ? std::numeric_limits<float>::infinity() : std::numeric_limits<float>::quiet_NaN())
                          : exponent == 0 ? std::ldexp(static_cast<float>(fraction), -24)
                                          : std::ldexp(static_cast<float>(fraction + 1024), exponent - 25);
  return (bits & 0x8000) != 0 ? -magnitude : magnitude;
}

std::string real_text(double value, int digits) { return std::isnan(value) ? "nan" : fmt::format("{:.{}g}", value, digits); }
/// As XLA prints it: with as few digits as surely are a decimal number's own, or with as many as any value needs.
template <class Real>
std::string real_text(Real value) {
  std::string text = real_text(value, std::numeric_limits<Real>::digits10);
  Real same{};
  std::from_chars(text.data(), text.data() + text.size(), same);
  return same == value || std::isnan(value) ? text : real_text(value, std::numeric_limits<Real>::max_digits10);
}

/// The values of a literal, one after the other; empty: they are not read, or not there.
std::vector<std::string> values_of(const xla::Literal& literal, HloType type) {
  std::vector<std::string> values;
  const auto integers = [&](const auto& numbers) {
    for (const auto number : numbers) values.push_back(std::to_string(number));
  };
  const auto reals = [&](const auto& numbers) {
    for (const auto number : numbers) values.push_back(real_text(number));
  };
  const auto pairs = [&](const auto& numbers) {
    for (int i = 0; i + 1 < numbers.size(); i += 2) values.push_back(fmt::format("({}, {})", real_text(numbers[i]), real_text(numbers[i + 1])));
  };
  const auto bytes = [&](const std::string& all, auto number) {
    for (const char byte : all) values.push_back(std::to_string(static_cast<decltype(number)>(byte)));
  };
  const auto half_words = [&](const std::string& all, auto text) {
    for (std::size_t i = 0; 2 * i + 1 < all.size(); ++i) values.push_back(text(half_word(all, i)));
  };
  switch (type) {
    case HloType::pred:
      for (const bool value : literal.preds()) values.emplace_back(value ? "true" : "false");
      break;
    case HloType::s8: bytes(literal.s8s(), static_cast<signed char>(0)); break;
    case HloType::u8: bytes(literal.u8s(), static_cast<unsigned char>(0)); break;
    case HloType::s16: half_words(literal.s16s(), [](std::uint16_t word) { return std::to_string(static_cast<std::int16_t>(word)); }); break;
    case HloType::u16: half_words(literal.u16s(), [](std::uint16_t word) { return std::to_string(word); }); break;
    case HloType::s32: integers(literal.s32s()); break;
    case HloType::s64: integers(literal.s64s()); break;
    case HloType::u32: integers(literal.u32s()); break;
    case HloType::u64: integers(literal.u64s()); break;
    case HloType::f16: half_words(literal.f16s(), [](std::uint16_t word) { return real_text(f16_of(word), 5); }); break;
    case HloType::bf16: half_words(literal.bf16s(), [](std::uint16_t word) { return real_text(bf16_of(word), 4); }); break;
    case HloType::f32: reals(literal.f32s()); break;
    case HloType::f64: reals(literal.f64s()); break;
    case HloType::c64: pairs(literal.c64s()); break;
    case HloType::c128: pairs(literal.c128s()); break;
    default: break;
  }
  return values;
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
    if (!error_) error_ = Diagnostic{{place_.empty() ? file_ : file_ + ": " + place_}, std::move(message)};
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
    const auto index = [](const auto& numbers) { return index_text(numbers); };
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
    return true;
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

  bool read_shape(const xla::Shape& proto, HloShape& shape, int depth = 0) {
    const auto type = type_numbered(proto.element_type());
    if (!type) return fail(fmt::format("expected the number of an element type, found {}", proto.element_type()));
    if (depth > deepest_proto_tuple) return fail("expected at most 64 tuples in each other");
    shape.type = *type;
    if (shape.is_tuple()) {
      for (const xla::Shape& element : proto.tuple_shapes())
        if (!read_shape(element, shape.elements.emplace_back(), depth + 1)) return false;
      return true;
    }
    if (static_cast<std::size_t>(proto.dimensions_size()) > most_dimensions) return fail("expected at most 64 dimensions");
    for (int d = 0; d < proto.dimensions_size(); ++d) {
      const bool dynamic = d < proto.is_dynamic_dimension_size() && proto.is_dynamic_dimension(d);
      std::int64_t size = proto.dimensions(d);
      if (dynamic) shape.dynamic_dims.push_back(d);
      if (dynamic && size == std::numeric_limits<std::int64_t>::min())
        size = HloShape::unbounded;
      else if (size < 0)
        return fail(fmt::format("expected a dimension from 0 on, found {}", size));
      shape.dims.push_back(size);
    }
    return read_layout(proto.layout(), shape);
  }

  bool read_layout(const xla::Layout& proto, HloShape& shape) {
    HloLayout& layout = shape.layout;
    layout.minor_to_major.assign(proto.minor_to_major().begin(), proto.minor_to_major().end());
    for (const xla::Tile& tile : proto.tiles()) {
      std::vector<std::int64_t>& dims = layout.tiles.emplace_back();
      for (const std::int64_t size : tile.dimensions()) dims.push_back(size == std::numeric_limits<std::int64_t>::min() ? HloLayout::combined : size);
    }
    if (proto.element_size_in_bits() < 0 || proto.element_size_in_bits() > 1024 || proto.memory_space() < 0 || proto.memory_space() > 1 << 20)
      return fail("expected the bits of an element and the number of a memory space");
    layout.element_bits = static_cast<int>(proto.element_size_in_bits());
    layout.memory_space = static_cast<int>(proto.memory_space());
    if (proto.tail_padding_alignment_in_elements() > 1) layout.others += fmt::format("L({})", proto.tail_padding_alignment_in_elements());
    for (const xla::SplitConfig& split : proto.split_configs())
      layout.others += fmt::format("SC({}:{})", split.dimension(), fmt::join(split.split_indices(), ","));
    shape.has_layout = layout != HloLayout{};
    return true;
  }

  bool shape_text(const xla::Shape& proto, std::string& text) {
    HloShape shape;
    if (!read_shape(proto, shape)) return false;
    text += to_text(shape);
    return true;
  }

  bool write_instruction(const xla::HloComputation& computation, const Instructions& known, const xla::HloInstruction& instruction) {
    place_ = "instruction " + quoted(instruction.name());
    const std::string& opcode = instruction.opcode();
    if (!is_name(opcode)) return fail("expected the name of an opcode, found " + quoted(opcode));
    std::string text = fmt::format("  {}%{} = ", instruction.id() == computation.root_id() ? "ROOT " : "", instruction.name());
    if (!shape_text(instruction.shape(), text)) return false;
    // async-start of one instruction is written as that instruction's start.
    const xla::HloInstruction* wrapped = nullptr;
    std::string suffix;
    if (opcode.starts_with("async-")) {
      const xla::HloInstruction* start = opcode == "async-start" ? &instruction : start_of(known, instruction);
      if (start != nullptr) wrapped = wrapped_in(*start);
      suffix = opcode.substr(std::string_view{"async"}.size());
    }
    text += fmt::format(" {}(", wrapped != nullptr ? wrapped->opcode() + suffix : opcode);
    if (!operands(known, instruction, text)) return false;
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
    if (!instruction.metadata().op_name().empty()) text += fmt::format(", metadata={{op_name={}}}", in_quotes(instruction.metadata().op_name()));
    if (!instruction.backend_config().empty()) text += ", backend_config=" + in_quotes(instruction.backend_config());
    line(text, instruction.name());
    return out_.text.size() <= most_ || fail(fmt::format("expected a module whose text has at most {} bytes", most_));
  }

  bool operands(const Instructions& known, const xla::HloInstruction& instruction, std::string& text) {
    if (instruction.opcode() == "parameter") {
      text += std::to_string(instruction.parameter_number());
      return true;
    }
    if (instruction.opcode() == "constant") return literal(instruction, text);
    for (int i = 0; i < instruction.operand_ids_size(); ++i) {
      const auto found = known.find(instruction.operand_ids(i));
      if (found == known.end()) return fail(fmt::format("expected operands in its computation, found the number {}", instruction.operand_ids(i)));
      text += fmt::format("{}%{}", i > 0 ? ", " : "", found->second->name());
      if (text.size() > most_) return fail(fmt::format("expected a module whose text has at most {} bytes", most_));
    }
    return true;
  }

  bool literal(const xla::HloInstruction& instruction, std::string& text) {
    HloShape shape;
    if (!read_shape(instruction.shape(), shape)) return false;
    const std::int64_t elements = shape.is_array() ? elements_of(shape) : 0;
    std::vector<std::string> values;
    if (elements <= most_literal_numbers) values = values_of(instruction.literal(), shape.type);
    const std::string list = fmt::format("{}", fmt::join(values, ", "));
    text += values.empty() && elements > 0 ? "{...}" : !shape.is_array() ? "{...}" : shape.dims.empty() ? list : '{' + list + '}';
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

  /// What XLA writes behind the operands, in its order as far as that can be seen in what is read.
  bool attributes(const xla::HloInstruction& instruction, std::string& text) {
    const std::string& opcode = instruction.opcode();
    dimensions(instruction, text);
    if (!instruction.fft_length().empty()) {
      constexpr std::array<std::string_view, 4> kinds{"FFT", "IFFT", "RFFT", "IRFFT"};
      if (instruction.fft_type() < 0 || instruction.fft_type() > 3) return fail("expected the number of a Fourier transform");
      text +=
          fmt::format(", fft_type={}, fft_length={}", kinds[static_cast<std::size_t>(instruction.fft_type())], in_braces(instruction.fft_length()));
    }
    if (!communication(instruction, text)) return false;
    window(instruction.window(), text);
    if (instruction.has_convolution_dimension_numbers() && !convolution(instruction.convolution_dimension_numbers(), text)) return false;
    if (instruction.feature_group_count() > 1) text += fmt::format(", feature_group_count={}", instruction.feature_group_count());
    if (instruction.batch_group_count() > 1) text += fmt::format(", batch_group_count={}", instruction.batch_group_count());
    product(instruction, text);
    indices(instruction, text);
    others(instruction, text);
    if (opcode == "custom-call") custom_call(instruction, text);
    return aliases(instruction, text), calls(instruction, text);
  }

  static void dimensions(const xla::HloInstruction& instruction, std::string& text) {
    if (instruction.opcode() == "iota") {
      text += fmt::format(", iota_dimension={}", instruction.dimensions().empty() ? 0 : instruction.dimensions(0));
    } else if (!instruction.dimensions().empty() || instruction.opcode() == "broadcast") {
      text += ", dimensions=" + in_braces(instruction.dimensions());
    }
    if (!instruction.slice_dimensions().empty()) {
      std::vector<std::string> extents;
      for (const auto& slice : instruction.slice_dimensions())
        extents.push_back(fmt::format("[{}:{}:{}]", slice.start(), slice.limit(), slice.stride()));
      text += fmt::format(", slice={{{}}}", fmt::join(extents, ", "));
    }
    if (!instruction.dynamic_slice_sizes().empty()) text += ", dynamic_slice_sizes=" + in_braces(instruction.dynamic_slice_sizes());
    if (instruction.padding_config().dimensions_size() > 0) {
      std::vector<std::string> dims;
      for (const auto& padding : instruction.padding_config().dimensions())
        dims.push_back(fmt::format("{}_{}_{}", padding.edge_padding_low(), padding.edge_padding_high(), padding.interior_padding()));
      text += fmt::format(", padding={}", fmt::join(dims, "x"));
    }
    if (instruction.opcode() == "get-tuple-element") text += fmt::format(", index={}", instruction.tuple_index());
  }

  static void window(const xla::Window& window, std::string& text) {
    if (window.dimensions().empty()) return;
    using Dimension = xla::WindowDimension;
    const auto each = [&](auto value) {
      std::vector<std::string> values;
      for (const Dimension& dimension : window.dimensions()) values.push_back(value(dimension));
      return fmt::format("{}", fmt::join(values, "x"));
    };
    text += fmt::format(", window={{size={} stride={} pad={} lhs_dilate={} rhs_dilate={} rhs_reversal={}}}",
                        each([](const Dimension& d) { return std::to_string(d.size()); }),
                        each([](const Dimension& d) { return std::to_string(d.stride()); }),
                        each([](const Dimension& d) { return fmt::format("{}_{}", d.padding_low(), d.padding_high()); }),
                        each([](const Dimension& d) { return std::to_string(d.base_dilation()); }),
                        each([](const Dimension& d) { return std::to_string(d.window_dilation()); }),
                        each([](const Dimension& d) { return std::string{d.window_reversal() ? "1" : "0"}; }));
  }

  /// "bf01": the dimensions of one array by their letters.
  bool labels(char first_letter, std::int64_t first, char second_letter, std::int64_t second,
              const google::protobuf::RepeatedField<std::int64_t>& spatial, std::string& text) {
    std::string names(static_cast<std::size_t>(spatial.size()) + 2, ' ');
    const auto put = [&](std::int64_t at, char letter) {
      if (at < 0 || static_cast<std::size_t>(at) >= names.size() || names[static_cast<std::size_t>(at)] != ' ')
        return fail("expected every dimension of a convolution once");
      names[static_cast<std::size_t>(at)] = letter;
      return true;
    };
    if (spatial.size() > 10) return fail("expected at most 10 spatial dimensions");
    if (!put(first, first_letter) || !put(second, second_letter)) return false;
    for (int d = 0; d < spatial.size(); ++d)
      if (!put(spatial[d], static_cast<char>('0' + d))) return false;
    text += names;
    return true;
  }

  bool convolution(const xla::ConvolutionDimensionNumbers& dims, std::string& text) {
    text += ", dim_labels=";
    if (!labels('b', dims.input_batch_dimension(), 'f', dims.input_feature_dimension(), dims.input_spatial_dimensions(), text)) return false;
    text += '_';
    if (!labels('i', dims.kernel_input_feature_dimension(), 'o', dims.kernel_output_feature_dimension(), dims.kernel_spatial_dimensions(), text))
      return false;
    text += "->";
    return labels('b', dims.output_batch_dimension(), 'f', dims.output_feature_dimension(), dims.output_spatial_dimensions(), text);
  }

  static void product(const xla::HloInstruction& instruction, std::string& text) {
    const bool ragged = instruction.has_ragged_dot_dimension_numbers();
    if (ragged || instruction.has_dot_dimension_numbers()) {
      const xla::DotDimensionNumbers& dims =
          ragged ? instruction.ragged_dot_dimension_numbers().dot_dimension_numbers() : instruction.dot_dimension_numbers();
      for (const auto& [name, numbers] : {std::pair{"lhs_batch_dims", &dims.lhs_batch_dimensions()},
                                          {"lhs_contracting_dims", &dims.lhs_contracting_dimensions()},
                                          {"rhs_batch_dims", &dims.rhs_batch_dimensions()},
                                          {"rhs_contracting_dims", &dims.rhs_contracting_dimensions()}})
        if (!numbers->empty()) text += fmt::format(", {}={}", name, in_braces(*numbers));
      if (ragged)
        text += fmt::format(", lhs_ragged_dims={}, rhs_group_dims={}", in_braces(instruction.ragged_dot_dimension_numbers().lhs_ragged_dimensions()),
                            in_braces(instruction.ragged_dot_dimension_numbers().rhs_group_dimensions()));
    }
    const auto& precision = instruction.precision_config().operand_precision();
    if (std::ranges::any_of(precision, [](int one) { return one != 0; })) {
      std::vector<std::string_view> names;
      for (const int one : precision) names.emplace_back(one == 1 ? "high" : one == 2 ? "highest" : "default");
      text += fmt::format(", operand_precision={{{}}}", fmt::join(names, ","));
    }
    constexpr std::array<std::string_view, 14> algorithms{"",
                                                          "dot_any_f8_any_f8_f32",
                                                          "dot_any_f8_any_f8_f32_fast_accum",
                                                          "dot_f16_f16_f16",
                                                          "dot_f16_f16_f32",
                                                          "dot_bf16_bf16_bf16",
                                                          "dot_bf16_bf16_f32",
                                                          "dot_bf16_bf16_f32_x3",
                                                          "dot_bf16_bf16_f32_x6",
                                                          "dot_tf32_tf32_f32",
                                                          "dot_tf32_tf32_f32_x3",
                                                          "dot_f32_f32_f32",
                                                          "dot_f64_f64_f64",
                                                          "dot_bf16_bf16_f32_x9"};
    const int algorithm = instruction.precision_config().algorithm();
    if (algorithm > 0 && static_cast<std::size_t>(algorithm) < algorithms.size())
      text += fmt::format(", algorithm={}", algorithms[static_cast<std::size_t>(algorithm)]);
  }

  /// Of gathers, scatters and sorts.
  static void indices(const xla::HloInstruction& instruction, std::string& text) {
    const auto lists = [&](std::initializer_list<std::pair<std::string_view, const google::protobuf::RepeatedField<std::int64_t>*>> all) {
      for (const auto& [name, numbers] : all) text += fmt::format(", {}={}", name, in_braces(*numbers));
    };
    if (instruction.has_gather_dimension_numbers()) {
      const xla::GatherDimensionNumbers& dims = instruction.gather_dimension_numbers();
      lists({{"offset_dims", &dims.offset_dims()},
             {"collapsed_slice_dims", &dims.collapsed_slice_dims()},
             {"start_index_map", &dims.start_index_map()}});
      if (!dims.operand_batching_dims().empty()) lists({{"operand_batching_dims", &dims.operand_batching_dims()}});
      if (!dims.start_indices_batching_dims().empty()) lists({{"start_indices_batching_dims", &dims.start_indices_batching_dims()}});
      text += fmt::format(", index_vector_dim={}", dims.index_vector_dim());
      lists({{"slice_sizes", &instruction.gather_slice_sizes()}});
    }
    if (instruction.has_scatter_dimension_numbers()) {
      const xla::ScatterDimensionNumbers& dims = instruction.scatter_dimension_numbers();
      lists({{"update_window_dims", &dims.update_window_dims()},
             {"inserted_window_dims", &dims.inserted_window_dims()},
             {"scatter_dims_to_operand_dims", &dims.scatter_dims_to_operand_dims()}});
      if (!dims.input_batching_dims().empty()) lists({{"input_batching_dims", &dims.input_batching_dims()}});
      if (!dims.scatter_indices_batching_dims().empty()) lists({{"scatter_indices_batching_dims", &dims.scatter_indices_batching_dims()}});
      text += fmt::format(", index_vector_dim={}", dims.index_vector_dim());
    }
    if (instruction.indices_are_sorted()) text += ", indices_are_sorted=true";
    if (instruction.unique_indices()) text += ", unique_indices=true";
    if (instruction.is_stable()) text += ", is_stable=true";
  }

  static void others(const xla::HloInstruction& instruction, std::string& text) {
    const std::string& opcode = instruction.opcode();
    if (!instruction.fusion_kind().empty()) text += fmt::format(", kind={}", instruction.fusion_kind());
    if (!instruction.comparison_direction().empty()) text += fmt::format(", direction={}", instruction.comparison_direction());
    if (instruction.comparison_type() == "TOTALORDER") text += ", type=TOTALORDER";
    if (instruction.exponent_bits() != 0 || instruction.mantissa_bits() != 0)
      text += fmt::format(", exponent_bits={}, mantissa_bits={}", instruction.exponent_bits(), instruction.mantissa_bits());
    if (opcode == "triangular-solve") {
      const xla::TriangularSolveOptions& options = instruction.triangular_solve_options();
      constexpr std::array<std::string_view, 4> transposes{"TRANSPOSE_INVALID", "NO_TRANSPOSE", "TRANSPOSE", "ADJOINT"};
      for (const auto& [name, given] :
           {std::pair{"left_side", options.left_side()}, {"lower", options.lower()}, {"unit_diagonal", options.unit_diagonal()}})
        if (given) text += fmt::format(", {}=true", name);
      if (options.transpose_a() >= 0 && options.transpose_a() < 4)
        text += fmt::format(", transpose_a={}", transposes[static_cast<std::size_t>(options.transpose_a())]);
    }
    if (opcode == "cholesky" && instruction.cholesky_options().lower()) text += ", lower=true";
    if (opcode == "topk") text += fmt::format(", k={}, largest={}", instruction.k(), instruction.largest());
    if (instruction.is_host_transfer()) text += ", is_host_transfer=true";
    if (instruction.is_composite()) text += ", is_composite=true";
    if (instruction.has_cross_program_prefetch_index())
      text += fmt::format(", cross_program_prefetch_index={}", instruction.cross_program_prefetch_index());
  }

  void custom_call(const xla::HloInstruction& instruction, std::string& text) {
    text += ", custom_call_target=" + in_quotes(instruction.custom_call_target());
    if (instruction.constrain_layout()) {
      std::string shapes;
      for (const xla::Shape& shape : instruction.operand_shapes_with_layout()) {
        if (!shapes.empty()) shapes += ", ";
        if (!shape_text(shape, shapes)) return;
      }
      text += fmt::format(", operand_layout_constraints={{{}}}", shapes);
    }
    if (instruction.custom_call_has_side_effect()) text += ", custom_call_has_side_effect=true";
    if (instruction.custom_call_schedule() == 1) text += ", custom_call_schedule=SCHEDULE_LATEST";
    if (instruction.custom_call_schedule() == 2) text += ", custom_call_schedule=SCHEDULE_EARLIEST";
    constexpr std::array<std::string_view, 5> versions{"", "", "API_VERSION_STATUS_RETURNING", "API_VERSION_STATUS_RETURNING_UNIFIED",
                                                       "API_VERSION_TYPED_FFI"};
    const int version = instruction.custom_call_api_version();
    if (version > 1 && static_cast<std::size_t>(version) < versions.size())
      text += fmt::format(", api_version={}", versions[static_cast<std::size_t>(version)]);
  }

  static void aliases(const xla::HloInstruction& instruction, std::string& text) {
    std::vector<std::string> pairs;
    for (const auto& pair : instruction.output_operand_aliasing())
      pairs.push_back(
          fmt::format("{}: ({}, {})", index_text(pair.output_shape_index()), pair.operand_index(), index_text(pair.operand_shape_index())));
    if (!pairs.empty()) text += fmt::format(", output_to_operand_aliasing={{{}}}", fmt::join(pairs, ", "));
  }

  bool communication(const xla::HloInstruction& instruction, std::string& text) {
    if (instruction.channel_id() > 0) text += fmt::format(", channel_id={}", instruction.channel_id());
    if (!replica_groups(instruction, text)) return false;
    if (!instruction.source_target_pairs().empty()) {
      std::vector<std::string> pairs;
      for (const auto& pair : instruction.source_target_pairs()) pairs.push_back(fmt::format("{{{},{}}}", pair.source(), pair.target()));
      text += fmt::format(", source_target_pairs={{{}}}", fmt::join(pairs, ","));
    }
    if (instruction.opcode() != "custom-call" && instruction.constrain_layout()) text += ", constrain_layout=true";
    if (instruction.use_global_device_ids()) text += ", use_global_device_ids=true";
    return true;
  }

  bool replica_groups(const xla::HloInstruction& instruction, std::string& text) {
    static const std::unordered_set<std::string_view> grouped{"all-reduce",     "all-reduce-start", "all-gather",        "all-gather-start",
                                                              "reduce-scatter", "all-to-all",       "ragged-all-to-all", "collective-broadcast"};
    const xla::CollectiveDeviceList& list = instruction.collective_device_list();
    Expected<ReplicaGroups> groups = ReplicaGroups{};
    if (instruction.has_mesh_axes_replica_group_list())
      groups = mesh_groups(instruction.mesh_axes_replica_group_list());
    else if (instruction.has_iota_collective_device_list())
      groups = iota_groups(instruction.iota_collective_device_list());
    else if (list.has_iota_replica_group_list())
      groups = iota_groups(list.iota_replica_group_list());
    else if (const auto& listed = !list.replica_groups().empty() ? list.replica_groups() : instruction.replica_groups(); !listed.empty())
      groups = listed_groups(listed);
    else if (!grouped.contains(instruction.opcode()))
      return true;
    if (!groups) return fail(groups.error().message);
    text += ", replica_groups=" + to_text(*groups);
    return true;
  }

  static Expected<ReplicaGroups> listed_groups(const google::protobuf::RepeatedPtrField<xla::ReplicaGroup>& listed) {
    std::vector<std::vector<std::int64_t>> groups;
    for (const xla::ReplicaGroup& group : listed) groups.emplace_back(group.replica_ids().begin(), group.replica_ids().end());
    if (std::ranges::any_of(groups, [](const auto& group) { return group.empty(); }))
      return Diagnostic{{}, "expected devices in every replica group"};
    return ReplicaGroups::of_list(groups);
  }

  static Expected<ReplicaGroups> iota_groups(const xla::IotaReplicaGroupList& iota) {
    std::vector<int> transpose(iota.iota_transpose_perm().begin(), iota.iota_transpose_perm().end());
    if (std::ranges::is_sorted(transpose)) transpose.clear();
    return ReplicaGroups::of_iota({iota.num_replica_groups(), iota.num_devices_per_group()},
                                  {iota.iota_reshape_dims().begin(), iota.iota_reshape_dims().end()}, transpose, {});
  }

  static Expected<ReplicaGroups> mesh_groups(const xla::MeshAxesReplicaGroupList& list) {
    std::vector<ReplicaGroups::Axis> axes;
    for (const auto& axis : list.mesh().axes()) {
      if (axis.name().find('\'') != std::string::npos)
        return Diagnostic{{}, "expected the name of an axis without quotation marks, found " + quoted(axis.name())};
      axes.push_back({axis.name(), axis.size()});
    }
    std::vector<std::int64_t> ids(list.mesh().device_ids().begin(), list.mesh().device_ids().end());
    if (list.mesh().has_iota_transform()) {
      const auto& iota = list.mesh().iota_transform();
      std::int64_t devices = 1;
      for (const std::int64_t size : iota.reshape_dims())
        if (size < 1 || size > most_listed_devices / devices)
          return Diagnostic{{}, "expected a mesh of at most 2^24 devices"};
        else
          devices *= size;
      std::vector<int> transpose;
      for (const std::int64_t d : iota.transpose_perm()) transpose.push_back(static_cast<int>(std::clamp<std::int64_t>(d, -1, most_dimensions)));
      const auto row = ReplicaGroups::of_iota({1, devices}, {iota.reshape_dims().begin(), iota.reshape_dims().end()}, transpose, {});
      if (!row) return row.error();
      ids = row->devices(0);
      if (std::ranges::is_sorted(ids)) ids.clear();
    }
    std::vector<ReplicaGroups::AxisPart> listed;
    for (const auto& axis : list.axes()) {
      if (axis.mesh_axis_index() < 0 || axis.mesh_axis_index() >= static_cast<std::int64_t>(axes.size()))
        return Diagnostic{{}, fmt::format("expected an axis of the mesh, found number {}", axis.mesh_axis_index())};
      ReplicaGroups::AxisPart part{static_cast<int>(axis.mesh_axis_index())};
      if (axis.has_sub_axis_info()) part.before = axis.sub_axis_info().pre_size(), part.size = axis.sub_axis_info().size();
      listed.push_back(part);
    }
    return ReplicaGroups::of_mesh(std::move(axes), std::move(ids), std::move(listed), {});
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
  return Diagnostic{{file}, "expected a module: text that begins with \"HloModule\", or an HloProto or HloModuleProto"};
}

}  // namespace podsim

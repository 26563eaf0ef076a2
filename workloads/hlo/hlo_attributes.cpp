// The attributes of instructions.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <unordered_map>

#include "workloads/hlo/attribute_values.hpp"
#include "workloads/hlo/hlo_field_text.hpp"
#include "workloads/hlo/hlo_statement.hpp"
#include "workloads/hlo/hlo_window_text.hpp"

namespace podsim {

namespace {

constexpr std::size_t most_pairs = std::size_t{1} << 24;

/// Reads the value of one attribute. Each function returns false where it has set the error.
class AttributeText : private HloFieldText {
 public:
  AttributeText(HloCursor& cursor, std::string_view name, HloStatement& statement)
      : HloFieldText{cursor}, name_{name}, statement_{statement}, attributes_{statement.attributes}, values_{attribute_values(name, statement.operation.opcode)} {}

  Status read() {
    const auto& table = readers();
    const auto found = table.find(name_);
    const std::size_t begin = cursor_.at();
    const bool ok = (found != table.end() ? (this->*found->second)() : keep()) && is_a_value(begin);
    if (!ok) return *error_;
    return success();
  }

 private:
  using Reader = bool (AttributeText::*)();
  static const std::unordered_map<std::string_view, Reader>& readers() {
    using A = AttributeText;
    static const std::unordered_map<std::string_view, Reader> table{
        {"dimensions", &A::list<&HloAttributes::dimensions>},
        {"iota_dimension", &A::iota_dimension},
        {"lhs_contracting_dims", &A::list<&HloAttributes::lhs_contracting>},
        {"rhs_contracting_dims", &A::list<&HloAttributes::rhs_contracting>},
        {"lhs_batch_dims", &A::list<&HloAttributes::lhs_batch>},
        {"rhs_batch_dims", &A::list<&HloAttributes::rhs_batch>},
        {"dynamic_slice_sizes", &A::list<&HloAttributes::dynamic_slice_sizes>},
        {"fft_length", &A::list<&HloAttributes::fft_length>},
        {"feature_group_count", &A::count<&HloAttributes::feature_group_count>},
        {"batch_group_count", &A::count<&HloAttributes::batch_group_count>},
        {"operand_precision", &A::precision},
        {"algorithm", &A::text<&HloAttributes::algorithm>},
        {"custom_call_target", &A::text<&HloAttributes::custom_call_target>},
        {"fft_type", &A::text<&HloAttributes::fft_type>},
        {"kind", &A::text<&HloAttributes::fusion_kind>},
        {"async_execution_thread", &A::text<&HloAttributes::async_execution_thread>},
        {"window", &A::window},
        {"dim_labels", &A::dim_labels},
        {"slice", &A::slice},
        {"padding", &A::padding},
        {"replica_groups", &A::replica_groups},
        {"source_target_pairs", &A::source_target_pairs},
        {"channel_id", &A::channel_id},
        {"use_global_device_ids", &A::use_global_device_ids},
        {"direction", &A::direction},
        {"control-predecessors", &A::control_predecessors},
        {"sharding", &A::sharding},
        {"backend_config", &A::backend_config},
        {"frontend_attributes", &A::frontend_attributes},
        {"metadata", &A::metadata},
        {"index", &A::index},
    };
    return table;
  }

  /// Up to the next "," or the end of the line outside brackets, as written.
  std::string_view raw() {
    const std::size_t begin = cursor_.at();
    if (cursor_.peek() == '{' || cursor_.peek() == '(' || cursor_.peek() == '[' || cursor_.peek() == '"')
      if (cursor_.peek() == '"' ? !cursor_.take_quoted().has_value() : !cursor_.take_balanced())
        return expected("the end of the attribute " + std::string{name_} + ", whose brackets and quotation marks are closed"), std::string_view{};
    cursor_.skip_to(",\n");
    return trimmed(cursor_.since(begin));
  }
  static std::string_view trimmed(std::string_view value) {
    while (!value.empty() && (value.back() == ' ' || value.back() == '\r' || value.back() == '\t')) value.remove_suffix(1);
    return value;
  }

  bool keep() {
    const std::string_view value = raw();
    if (error_) return false;
    attributes_.others.push_back({std::string{name_}, std::string{value}, values_.has_value()});
    return true;
  }

  /// What was read from `begin` on is one of the attribute's values. Of an opcode that is not known nothing is.
  bool is_a_value(std::size_t begin) {
    if (!values_ || statement_.operation.opcode == HloOpcode::unknown) return true;
    const std::string_view text = trimmed(cursor_.since(begin));
    switch (values_->kind) {
      case HloAttributeValues::Kind::any: return true;
      case HloAttributeValues::Kind::truth: return text == "true" || text == "false" || fail(begin, "true or false");
      case HloAttributeValues::Kind::word:
        return std::ranges::find(values_->words, text) != values_->words.end() || fail(begin, fmt::format("one of {}", fmt::join(values_->words, ", ")));
      case HloAttributeValues::Kind::numbers:
        return (text.starts_with('{') && text.find_first_not_of("{}0123456789, ") == std::string_view::npos) || fail(begin, "\"{\" and a list of numbers from 0 on");
      case HloAttributeValues::Kind::number: {
        std::int64_t number = 0;
        const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), number);
        const bool whole = status == std::errc{} && end == text.data() + text.size();
        return (whole && number >= values_->least) || fail(begin, fmt::format("a number from {} on", values_->least));
      }
    }
    return true;
  }

  template <std::vector<std::int64_t> HloAttributes::*field>
  bool list() {
    return integers(attributes_.*field);
  }
  bool integers(std::vector<std::int64_t>& values) {
    if (!is('{', "\"{\" and a list of numbers")) return false;
    cursor_.skip_blanks();
    values.clear();
    if (cursor_.take('}')) return true;
    do {
      if (values.size() == most_attribute_dims) return expected("at most 64 numbers");
      cursor_.skip_blanks();
      const std::size_t at = cursor_.at();
      if (!integer(values.emplace_back(), "a number")) return false;
      if (values.back() < 0) return fail(at, "a number from 0 on");
      cursor_.skip_blanks();
    } while (cursor_.take(','));
    return is('}', "\",\" and the next number, or \"}\"");
  }

  template <std::int64_t HloAttributes::*field>
  bool count() {
    const std::size_t at = cursor_.at();
    if (!integer(attributes_.*field, "a number of groups")) return false;
    return attributes_.*field >= 1 || fail(at, "a number of groups from 1 on");
  }

  /// {highest,default}, or more of them.
  bool precision() {
    if (!is('{', "\"{\" and the precision of each operand")) return false;
    do {
      cursor_.skip_blanks();
      const std::size_t begin = cursor_.at();
      cursor_.skip_to(",} \n");
      const std::string_view name = cursor_.since(begin);
      HloPrecision found = HloPrecision::standard;
      if (name == "highest")
        found = HloPrecision::highest;
      else if (name == "high")
        found = HloPrecision::high;
      else if (name.empty())
        return fail(begin, "default, high or highest");
      attributes_.precision = std::max(attributes_.precision, found);
      cursor_.skip_blanks();
    } while (cursor_.take(','));
    return is('}', "\",\" and the next precision, or \"}\"");
  }

  template <std::string HloAttributes::*field>
  bool text() {
    attributes_.*field = plain_text();
    return !error_;
  }
  std::string plain_text() {
    if (cursor_.peek() != '"') return std::string{raw()};
    const auto quoted = cursor_.take_quoted();
    if (!quoted) return expected("a text that ends with a quotation mark"), std::string{};
    return unescaped(*quoted);
  }

  bool iota_dimension() {
    const std::size_t at = cursor_.at();
    if (!integer(attributes_.dimensions.emplace_back(), "a dimension")) return false;
    return attributes_.dimensions.back() >= 0 || fail(at, "a dimension from 0 on");
  }

  bool index() {
    const std::size_t at = cursor_.at();
    if (!integer(statement_.number, "the index of an element")) return false;
    return statement_.number >= 0 || fail(at, "the index of an element from 0 on");
  }

  bool channel_id() {
    // 0 stands for none in XLA's binary form, and its text prints none.
    std::int64_t id = 0;
    const std::size_t at = cursor_.at();
    if (!integer(id, "a channel")) return false;
    attributes_.channel_id = id;
    return id >= 0 || fail(at, "a channel from 0 on");
  }

  bool use_global_device_ids() {
    const bool yes = cursor_.take("true");
    if (!yes && !cursor_.take("false")) return expected("true or false");
    attributes_.use_global_device_ids = yes;
    return true;
  }

  bool direction() {
    constexpr std::array<std::string_view, 7> names{"", "EQ", "NE", "GE", "GT", "LE", "LT"};
    const std::size_t at = cursor_.at();
    const std::string_view word = cursor_.take_name();
    const auto* const found = std::find(names.begin() + 1, names.end(), word);
    if (found == names.end()) return fail(at, "EQ, NE, GE, GT, LE or LT");
    attributes_.direction = static_cast<HloDirection>(found - names.begin());
    return true;
  }

  bool took(const Status& read) {
    if (!read && !error_) error_ = read.error();
    return static_cast<bool>(read);
  }
  bool window() { return took(read_window(cursor_, attributes_.window)); }
  bool dim_labels() { return took(read_dim_labels(cursor_, attributes_.convolution)); }
  bool slice() { return took(read_slice(cursor_, attributes_.slice)); }
  bool padding() { return took(read_padding(cursor_, attributes_.padding)); }

  bool replica_groups() {
    std::size_t at = cursor_.at();
    auto groups = parse_replica_groups(cursor_.text(), at, cursor_.origin());
    if (!groups) {
      if (!error_) error_ = groups.error();
      return false;
    }
    cursor_.move_to(at);
    attributes_.replica_groups = *std::move(groups);
    return true;
  }

  bool source_target_pairs() {
    if (!is('{', "\"{\" and pairs of devices")) return false;
    cursor_.skip_blanks();
    if (cursor_.take('}')) return true;
    do {
      if (attributes_.source_target_pairs.size() == most_pairs) return expected("at most 2^24 pairs");
      cursor_.skip_blanks();
      const std::size_t at = cursor_.at();
      auto& [source, target] = attributes_.source_target_pairs.emplace_back();
      if (!is('{', "\"{\" and a pair of devices") || !integer(source, "the device that sends") || !is(',', "\",\" and the device that receives") ||
          !integer(target, "the device that receives") || !is('}', "\"}\""))
        return false;
      if (source < 0 || target < 0) return fail(at, "devices from 0 on");
      cursor_.skip_blanks();
    } while (cursor_.take(','));
    return is('}', "\",\" and the next pair, or \"}\"");
  }

  bool control_predecessors() {
    if (!is('{', "\"{\" and names of instructions")) return false;
    cursor_.skip_blanks();
    if (cursor_.take('}')) return true;
    do {
      cursor_.skip_blanks();
      HloReference& reference = statement_.control_predecessors.emplace_back();
      reference.at = cursor_.at();
      cursor_.take('%');
      reference.name = cursor_.take_name();
      if (reference.name.empty()) return expected("the name of an instruction");
      cursor_.skip_blanks();
    } while (cursor_.take(','));
    return is('}', "\",\" and the next name, or \"}\"");
  }

  bool sharding() {
    attributes_.sharding = std::string{raw()};
    return !error_;
  }

  bool backend_config() {
    const std::size_t begin = cursor_.at();
    attributes_.backend_config = plain_text();
    if (error_) return false;
    const HloConfigProblem problem = read_backend_config(attributes_.backend_config, attributes_);
    statement_.bad_backend_config = !problem.is_json;
    if (problem.field.empty()) return true;
    const std::size_t field = cursor_.since(begin).find(problem.field);
    return fail(begin + (field == std::string_view::npos ? 0 : field), problem.wanted);
  }

  /// Behind "{": NAME=VALUE with spaces or commas between them; `take` gets each.
  template <class Take>
  bool members(Take take) {
    if (!is('{', "\"{\"")) return false;
    while (true) {
      cursor_.skip_blanks();
      if (cursor_.take('}')) return true;
      const std::string_view member = cursor_.take_name();
      cursor_.skip_blanks();
      if (member.empty() || !cursor_.take('=')) return expected("NAME=VALUE or \"}\"");
      cursor_.skip_blanks();
      const std::size_t begin = cursor_.at();
      if (cursor_.peek() == '"') {
        const auto quoted = cursor_.take_quoted();
        if (!quoted) return expected("a text that ends with a quotation mark");
        take(member, *quoted);
      } else {
        if (cursor_.peek() == '{' && !cursor_.take_balanced()) return expected("\"}\" for every \"{\"");
        cursor_.skip_to(", \n");
        take(member, cursor_.since(begin));
      }
      cursor_.skip_blanks();
      cursor_.take(',');
    }
  }

  bool frontend_attributes() {
    const std::size_t begin = cursor_.at();
    const bool ok = members([&](std::string_view member, std::string_view value) {
      if (member == "async_collective_name") attributes_.async_collective_name = unescaped(value);
      if (member == "_xla_megascale_transfer_type") attributes_.megascale_transfer = unescaped(value);
      if (member == "_xla_host_transfer_rendezvous") attributes_.host_rendezvous = unescaped(value);
      if (member == "_xla_send_recv_source_target_pairs") {
        const std::size_t end = cursor_.at();
        cursor_.move_to(static_cast<std::size_t>(value.data() - cursor_.text().data()));
        source_target_pairs();
        cursor_.move_to(end);
      }
    });
    attributes_.frontend_attributes = std::string{cursor_.since(begin)};
    return ok && !error_;
  }

  bool metadata() {
    return members([&](std::string_view member, std::string_view value) {
      if (member == "op_name") statement_.op_name = value.find('\\') == std::string_view::npos ? std::string{value} : unescaped(value);
      if (member == "source_file") statement_.source_file = unescaped(value);
      if (member == "source_line") statement_.source_line = value;
      if (member == "stack_frame_id") std::from_chars(value.data(), value.data() + value.size(), statement_.stack_frame);
    });
  }

  std::string_view name_;
  HloStatement& statement_;
  HloAttributes& attributes_;
  std::optional<HloAttributeValues> values_;
};

}  // namespace

std::optional<HloCallAttribute> call_attribute_named(std::string_view name) {
  static const std::unordered_map<std::string_view, HloCallAttribute> table{{"calls", {HloRole::calls, false}},
                                                                            {"to_apply", {HloRole::to_apply, false}},
                                                                            {"condition", {HloRole::condition, false}},
                                                                            {"body", {HloRole::body, false}},
                                                                            {"branch_computations", {HloRole::branch, true}},
                                                                            {"true_computation", {HloRole::branch, false}},
                                                                            {"false_computation", {HloRole::branch, false}},
                                                                            {"select", {HloRole::select, false}},
                                                                            {"scatter", {HloRole::scatter, false}},
                                                                            {"called_computations", {HloRole::called, true}}};
  const auto found = table.find(name);
  if (found == table.end()) return std::nullopt;
  return found->second;
}

Status read_attribute_value(HloCursor& cursor, std::string_view name, HloStatement& statement) {
  const bool on_instruction = name == "index" || name == "metadata" || name == "control-predecessors";
  statement.has_attributes = statement.has_attributes || !on_instruction;
  return AttributeText{cursor, name, statement}.read();
}

}  // namespace podsim

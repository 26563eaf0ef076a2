#include "topologies/nccl/nccl_tuner.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <limits>
#include <span>

#include "sim/base/text.hpp"
#include "sim/base/units.hpp"

namespace podsim {

namespace {

constexpr std::array<std::pair<std::string_view, std::string_view>, 5> tuned_collectives{
    {{"broadcast", "broadcast"}, {"reduce", "reduce"}, {"allgather", "all-gather"}, {"reducescatter", "reduce-scatter"}, {"allreduce", "all-reduce"}}};
constexpr std::array<std::string_view, 7> tuned_algorithms{"tree", "ring", "collnet_direct", "collnet_chain", "nvls", "nvls_tree", "pat"};
constexpr std::array<std::string_view, 3> tuned_protocols{"ll", "ll128", "simple"};
constexpr std::array<std::string_view, 10> tuner_fields{"colltype", "minbytes", "maxbytes", "algorithm", "protocol", "channels", "nNodes", "nRanks", "numPipeOps", "regBuff"};
constexpr std::size_t least_fields = 8;

/// Reads the fields of one line.
class TunerLine {
 public:
  TunerLine(const std::vector<std::string>& fields, SourceLocation where) : fields_{fields}, where_{std::move(where)} {}

  Expected<std::string> word(std::size_t f, std::span<const std::string_view> words) {
    const std::string text{trimmed(fields_[f])};
    if (std::ranges::find(words, text) != words.end()) return text;
    return Diagnostic{at(f), fmt::format("expected {} of {}, found {}", tuner_fields[f], fmt::join(words, ", "), quoted(text))};
  }
  Expected<std::int64_t> number(std::size_t f, std::int64_t low, std::int64_t high = std::numeric_limits<std::int64_t>::max()) {
    if (f >= fields_.size()) return std::int64_t{-1};
    return parse_integer(trimmed(fields_[f]), low, high, at(f));
  }

 private:
  [[nodiscard]] SourceLocation at(std::size_t f) const {
    SourceLocation place = where_;
    for (std::size_t before = 0; before < f; ++before) place.column += static_cast<int>(fields_[before].size()) + 1;
    place.column += static_cast<int>(fields_[f].size() - std::string_view{fields_[f]}.substr(std::min(fields_[f].find_first_not_of(" \t"), fields_[f].size())).size());
    return place;
  }

  const std::vector<std::string>& fields_;
  SourceLocation where_;
};

Expected<NcclTunerRow> read_row(const std::vector<std::string>& fields, const SourceLocation& where) {
  if (fields.size() < least_fields || fields.size() > tuner_fields.size())
    return Diagnostic{where, fmt::format("expected {} to {} fields ({}), found {}", least_fields, tuner_fields.size(), fmt::join(tuner_fields, ","), fields.size())};
  std::array<std::string_view, tuned_collectives.size()> names;
  std::ranges::transform(tuned_collectives, names.begin(), [](const auto& pair) { return pair.first; });
  TunerLine line{fields, where};
  const auto collective = line.word(0, names), algorithm = line.word(3, tuned_algorithms), protocol = line.word(4, tuned_protocols);
  for (const auto* text : {&collective, &algorithm, &protocol})
    if (!*text) return text->error();
  const auto low = line.number(1, 0), high = line.number(2, 0);
  for (const auto* bytes : {&low, &high})
    if (!*bytes) return bytes->error();
  if (*high < *low) return Diagnostic{where, fmt::format("expected a maximum from {} bytes on, found {}", *low, *high)};
  NcclTunerRow row{*collective, *low, *high, *algorithm, *protocol};
  row.where = where;
  const std::array<int*, 5> numbers{&row.channels, &row.nodes, &row.ranks, &row.pipe_ops, &row.registered};
  for (std::size_t n = 0; n < numbers.size(); ++n) {
    const auto value = line.number(5 + n, -1, 1 << 24);
    if (!value) return value.error();
    *numbers[n] = static_cast<int>(*value);
  }
  return row;
}

}  // namespace

Expected<std::vector<NcclTunerRow>> read_nccl_tuner(std::string_view text, const std::string& file) {
  std::vector<NcclTunerRow> rows;
  int number = 0;
  for (const std::string& line : split(text, '\n')) {
    ++number;
    if (trimmed(line).empty() || trimmed(line).front() == '#') continue;
    auto row = read_row(split(trimmed(line)), {file, number, 1});
    if (!row) return row.error();
    rows.push_back(*std::move(row));
  }
  if (rows.empty()) return Diagnostic{{file, 1, 1}, fmt::format("expected a line {}, found none", fmt::join(tuner_fields, ","))};
  return rows;
}

std::string write_nccl_tuner(const std::vector<NcclTunerRow>& rows) {
  std::string text = fmt::format("# {}\n", fmt::join(tuner_fields, ","));
  for (const NcclTunerRow& row : rows)
    text += fmt::format("{},{},{},{},{},{},{},{},{},{}\n", row.collective, row.min_bytes, row.max_bytes, row.algorithm, row.protocol, row.channels, row.nodes, row.ranks, row.pipe_ops, row.registered);
  return text;
}

const NcclTunerRow* tuned_by(const std::vector<NcclTunerRow>& rows, std::string_view collective, Bytes bytes, int nodes, int ranks) {
  const auto is_any = [](int wanted, int got) { return wanted == -1 || wanted == got; };
  const auto found = std::ranges::find_if(rows, [&](const NcclTunerRow& row) {
    return row.collective == collective && row.min_bytes <= bytes.count() && bytes.count() <= row.max_bytes && is_any(row.nodes, nodes) && is_any(row.ranks, ranks) && is_any(row.pipe_ops, 1) && row.registered != 1;
  });
  return found == rows.end() ? nullptr : &*found;
}

std::string collective_of_nccl(std::string_view collective) {
  const auto* const found = std::ranges::find(tuned_collectives, collective, &std::pair<std::string_view, std::string_view>::first);
  return found == tuned_collectives.end() ? "" : std::string{found->second};
}

std::string nccl_collective_of(std::string_view collective) {
  const auto* const found = std::ranges::find(tuned_collectives, collective, &std::pair<std::string_view, std::string_view>::second);
  return found == tuned_collectives.end() ? "" : std::string{found->first};
}

std::string algorithm_of_nccl(std::string_view algorithm, int nodes) {
  if (algorithm == "ring") return nodes > 1 ? "channels" : "ring";
  if (algorithm == "tree") return "tree";
  if (algorithm == "nvls") return nodes > 1 ? "" : "in-switch";
  return algorithm == "nvls_tree" ? "hierarchical-in-switch" : "";
}

std::string nccl_algorithm_of(std::string_view algorithm) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 5> known{{{"channels", "ring"}, {"ring", "ring"}, {"tree", "tree"}, {"in-switch", "nvls"}, {"hierarchical-in-switch", "nvls_tree"}}};
  const auto* const found = std::ranges::find(known, algorithm, &std::pair<std::string_view, std::string_view>::first);
  return found == known.end() ? "" : std::string{found->second};
}

}  // namespace podsim

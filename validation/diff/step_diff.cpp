#include "validation/diff/step_diff.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <utility>

#include "sim/base/units.hpp"
#include "validation/diff/kernel_order.hpp"

namespace podsim {

namespace {

constexpr double same_size = 0.01;         // sizes that differ by less are the same
constexpr double rounding_of_steps = 1e-9;      // of the step
constexpr double no_gap = 1e-6;        // of the step
constexpr double as_predicted = 5e-4;  // of the step: what one digit does not show
constexpr double worth_a_word = 0.1;   // of the gap

double magnitude(Seconds time) { return std::abs(time.count()); }

void add(DiffSide& side, const StepOperation& operation) {
  side.names.push_back(operation.name);
  side.count += operation.count;
  side.time += operation.time;
  side.beside += operation.beside;
}

double size_of_one(const StepOperation& operation) {
  return operation.flops.count() > 0 ? operation.flops.count() : static_cast<double>(operation.bytes.count());
}
double size_of_all(const StepOperation& operation) { return operation.count * size_of_one(operation); }

bool may_be_one(const StepOperation& a, const StepOperation& b) {
  return a.category == b.category && (a.devices == 0 || b.devices == 0 || a.devices == b.devices);
}

/// How far apart two sizes are, as a ratio; nothing if they differ by more than same_size.
std::optional<double> apart(double a, double b) {
  if (!(a > 0 && b > 0)) return std::nullopt;
  const double ratio = std::abs(std::log(a / b));
  if (!(ratio < same_size)) return std::nullopt;
  return ratio;
}

/// "ff1/gather W" of "ff1: gather W".
std::string path_of(std::string name) {
  for (std::size_t at = name.find(": "); at != std::string::npos; at = name.find(": ", at)) name.replace(at, 2, "/");
  return name;
}

/// "ff1/gather W" of "jit(step)/ff1/gather W:"; empty: it is not of a compiled function.
std::string path_in(std::string_view provenance) {
  const std::size_t slash = provenance.find(")/");
  if (!provenance.starts_with("jit(") || slash == std::string_view::npos) return {};
  provenance.remove_prefix(slash + 2);
  if (provenance.ends_with(':')) provenance.remove_suffix(1);
  return std::string{provenance};
}

class Matching {
 public:
  Matching(const std::vector<StepOperation>& predicted, const std::vector<StepOperation>& measured)
      : predicted_{predicted}, measured_{measured}, group_of_predicted_(predicted.size()), group_of_measured_(measured.size()) {}

  /// `kernels`: what is known before.
  void run(const std::vector<KernelPair>& kernels, StepDiff& diff) {
    for (const KernelPair& pair : kernels) {
      const std::size_t group = new_group(pair.predicted.front());
      for (const std::size_t p : pair.predicted)
        if (p != pair.predicted.front()) group_of_predicted_[p] = group, groups_[group].predicted.push_back(p);
      for (const std::size_t m : pair.measured) join(m, group);
    }
    by_name();
    by_provenance();
    by_size_of_one();
    by_size_of_all();
    by_being_the_only_one();
    for (const auto& [ps, ms] : groups_) {
      DiffRow row{predicted_[ps.front()].name, predicted_[ps.front()].category, {}, {}};
      for (const std::size_t p : ps) add(row.predicted, predicted_[p]);
      for (const std::size_t m : ms) add(row.measured, measured_[m]);
      row.predicted.of = ps, row.measured.of = ms;
      diff.operations.push_back(std::move(row));
    }
    for (std::size_t p = 0; p < predicted_.size(); ++p)
      if (!group_of_predicted_[p]) diff.unmatched.push_back({false, predicted_[p]});
    for (std::size_t m = 0; m < measured_.size(); ++m)
      if (!group_of_measured_[m]) diff.unmatched.push_back({true, measured_[m]});
  }

 private:
  struct Group {
    std::vector<std::size_t> predicted, measured;
  };

  std::size_t new_group(std::size_t p) {
    group_of_predicted_[p] = groups_.size();
    groups_.push_back({{p}, {}});
    return groups_.size() - 1;
  }
  void join(std::size_t m, std::size_t group) {
    group_of_measured_[m] = group;
    groups_[group].measured.push_back(m);
  }

  void by_name() {
    std::map<std::pair<std::string_view, std::string_view>, std::vector<std::size_t>> named;
    for (std::size_t m = 0; m < measured_.size(); ++m)
      if (!measured_[m].is_kernel) named[{measured_[m].category, measured_[m].name}].push_back(m);
    std::map<std::pair<std::string_view, std::string_view>, std::size_t> groups;
    for (std::size_t p = 0; p < predicted_.size(); ++p) {
      if (group_of_predicted_[p]) continue;
      const std::string_view category = predicted_[p].category, name = predicted_[p].name;
      auto found = named.find({category, name});
      // An instruction of a compiled module has the loop and the trip in front of its name, "while.1 0 all-gather.2": a profile adds its trips up.
      if (found == named.end()) found = named.find({category, name.substr(name.rfind(' ') + 1)});
      if (found == named.end()) continue;
      if (const auto known = groups.find(found->first); known != groups.end()) {
        group_of_predicted_[p] = known->second;
        groups_[known->second].predicted.push_back(p);
        continue;
      }
      const std::size_t group = groups[found->first] = new_group(p);
      for (const std::size_t m : found->second) join(m, group);
    }
  }

  /// "jit(step)/ff1/gather W:" is "ff1: gather W", and so is "jit(step)/ff1/gather W/again:".
  void by_provenance() {
    std::map<std::pair<std::string_view, std::string>, std::vector<std::size_t>> paths;  // predicted ones that are left
    for (std::size_t p = 0; p < predicted_.size(); ++p)
      if (!group_of_predicted_[p]) paths[{predicted_[p].category, path_of(predicted_[p].name)}].push_back(p);
    std::map<std::size_t, std::size_t> groups;  // by the first predicted one
    for (std::size_t m = 0; m < measured_.size(); ++m) {
      if (group_of_measured_[m]) continue;
      const std::string path = path_in(measured_[m].provenance);
      auto found = paths.find({measured_[m].category, path});
      if (found == paths.end()) found = paths.find({measured_[m].category, path.substr(0, path.rfind('/'))});
      if (path.empty() || found == paths.end()) continue;
      const auto [group, is_new] = groups.try_emplace(found->second.front(), groups_.size());
      if (is_new) {
        groups_.push_back({found->second, {}});
        for (const std::size_t p : found->second) group_of_predicted_[p] = group->second;
      }
      join(m, group->second);
    }
  }

  void by_size_of_one() {
    std::vector<Group> candidates;  // predicted ones that are left, of one size each
    for (std::size_t p = 0; p < predicted_.size(); ++p) {
      if (group_of_predicted_[p] || !(size_of_one(predicted_[p]) > 0)) continue;
      const auto same = std::ranges::find_if(candidates, [&](const Group& group) {
        const StepOperation& other = predicted_[group.predicted.front()];
        return other.category == predicted_[p].category && other.devices == predicted_[p].devices && size_of_one(other) == size_of_one(predicted_[p]);
      });
      if (same != candidates.end())
        same->predicted.push_back(p);
      else
        candidates.push_back({{p}, {}});
    }
    for (std::size_t m = 0; m < measured_.size(); ++m) {
      if (group_of_measured_[m]) continue;
      Group* nearest = nullptr;
      double least = same_size;
      for (Group& group : candidates) {
        const StepOperation& other = predicted_[group.predicted.front()];
        if (!may_be_one(other, measured_[m])) continue;
        if (const auto ratio = apart(size_of_one(other), size_of_one(measured_[m])); ratio && *ratio < least) nearest = &group, least = *ratio;
      }
      if (nearest != nullptr) nearest->measured.push_back(m);
    }
    for (const Group& group : candidates) {
      if (group.measured.empty()) continue;
      for (const std::size_t p : group.predicted) group_of_predicted_[p] = groups_.size();
      for (const std::size_t m : group.measured) group_of_measured_[m] = groups_.size();
      groups_.push_back(group);
    }
  }

  void by_size_of_all() {
    for (std::size_t p = 0; p < predicted_.size(); ++p) {
      if (group_of_predicted_[p]) continue;
      std::optional<std::size_t> nearest;
      double least = same_size;
      for (std::size_t m = 0; m < measured_.size(); ++m) {
        if (group_of_measured_[m] || !may_be_one(predicted_[p], measured_[m])) continue;
        if (const auto ratio = apart(size_of_all(predicted_[p]), size_of_all(measured_[m])); ratio && *ratio < least) nearest = m, least = *ratio;
      }
      if (nearest) join(*nearest, new_group(p));
    }
  }

  void by_being_the_only_one() {
    struct Left {
      std::vector<std::size_t> predicted, measured;
    };
    std::map<std::string_view, Left> left;
    for (std::size_t p = 0; p < predicted_.size(); ++p)
      if (!group_of_predicted_[p]) left[predicted_[p].category].predicted.push_back(p);
    for (std::size_t m = 0; m < measured_.size(); ++m)
      if (!group_of_measured_[m]) left[measured_[m].category].measured.push_back(m);
    for (const auto& [category, both] : left) {
      if (both.predicted.size() != 1 || both.measured.size() != 1) continue;
      const StepOperation& p = predicted_[both.predicted.front()];
      const StepOperation& m = measured_[both.measured.front()];
      if (size_of_one(p) > 0 && size_of_one(m) > 0) continue;
      join(both.measured.front(), new_group(both.predicted.front()));
    }
  }

  const std::vector<StepOperation>& predicted_;
  const std::vector<StepOperation>& measured_;
  std::vector<std::optional<std::size_t>> group_of_predicted_, group_of_measured_;
  std::vector<Group> groups_;
};

/// One category of what is one instruction.
void agree_on_category(StepOperation& predicted, StepOperation& measured) {
  if (predicted.category == "opaque")
    predicted.category = measured.category;
  else if (measured.of_kernels)
    measured.category = predicted.category;
}

void agree_on_categories(const std::vector<KernelPair>& kernels, StepTimes& predicted, StepTimes& measured) {
  for (const KernelPair& pair : kernels)
    for (const std::size_t p : pair.predicted)
      for (const std::size_t m : pair.measured) agree_on_category(predicted.operations[p], measured.operations[m]);
  std::map<std::string_view, std::size_t> named;
  for (std::size_t m = 0; m < measured.operations.size(); ++m)
    if (!measured.operations[m].is_kernel) named.try_emplace(measured.operations[m].name, m);
  for (StepOperation& operation : predicted.operations)
    if (const auto same = named.find(std::string_view{operation.name}.substr(operation.name.rfind(' ') + 1)); same != named.end())
      agree_on_category(operation, measured.operations[same->second]);
}

std::vector<DiffRow> categories_of(const StepTimes& predicted, const StepTimes& measured) {
  std::map<std::string, DiffRow> rows;
  const auto collect = [&rows](const StepTimes& step, DiffSide DiffRow::*side) {
    Seconds busy;
    for (const StepOperation& operation : step.operations) {
      add(rows[operation.category].*side, operation);
      busy += operation.time;
    }
    const Seconds idle = step.time - busy;
    if (idle.count() > rounding_of_steps * step.time.count()) (rows["idle"].*side).time += idle;
  };
  collect(predicted, &DiffRow::predicted);
  collect(measured, &DiffRow::measured);
  std::vector<DiffRow> result;
  for (auto& [name, row] : rows) {
    row.name = row.category = name;
    result.push_back(std::move(row));
  }
  return result;
}

std::string part_text(double part) { return fmt::format("{:.{}f} %", 100 * part, std::abs(part) < 0.0995 ? 1 : 0); }

/// What a category's gap in one direction is made of: the two largest of its operations, where they are a part worth a word of it.
std::string within(const StepDiff& diff, const DiffRow& category) {
  const double sign = category.gap() < Seconds{} ? -1 : 1;
  std::vector<std::pair<double, std::string>> parts;
  for (const DiffRow& row : diff.operations)
    if (row.category == category.name) parts.emplace_back(sign * row.gap().count(), row.name);
  for (const UnmatchedOperation& one : diff.unmatched)
    if (one.operation.category == category.name) parts.emplace_back(sign * (one.measured ? 1 : -1) * one.operation.time.count(), one.operation.name);
  std::ranges::stable_sort(parts, std::greater{}, &std::pair<double, std::string>::first);
  std::string text;
  std::size_t named = 0, more = 0;
  for (const auto& [gap, name] : parts) {
    if (gap < worth_a_word * magnitude(category.gap())) break;
    if (named < 2)
      text += fmt::format("{}{}", named++ == 0 ? "" : ", ", name);
    else
      ++more;
  }
  if (named == 0) return "";
  return fmt::format(" ({}{})", text, more > 0 ? fmt::format(" and {} more", more) : "");
}

std::string sentence_of(const StepDiff& diff) {
  const Seconds gap = diff.measured - diff.predicted;
  const double scale = std::max(diff.predicted.count(), diff.measured.count());
  const bool equal = magnitude(gap) <= as_predicted * scale;
  const std::string layers = diff.layers > 1 ? fmt::format(" for {} layers", diff.layers) : "";
  std::string text = "The step takes " + to_text(diff.measured);
  if (equal) {
    text += ", as long as predicted" + layers;
    std::string parts;
    for (const DiffRow& row : diff.categories)
      if (magnitude(row.gap()) > 0.01 * scale)
        parts += fmt::format("{}{} takes {} {}{}", parts.empty() ? "" : ", ", row.name, to_text(Seconds{magnitude(row.gap())}),
                             row.gap() > Seconds{} ? "more" : "less", within(diff, row));
    return text + (parts.empty() ? "." : "; but " + parts + ".");
  }
  const bool slower = gap > Seconds{};
  text += fmt::format(", {}{} {} than predicted{}", to_text(Seconds{magnitude(gap)}),
                      diff.predicted > Seconds{} ? fmt::format(" ({})", part_text(magnitude(gap) / diff.predicted.count())) : "",
                      slower ? "more" : "less", layers);
  std::vector<const DiffRow*> rows;  // in the direction of the gap
  for (const DiffRow& row : diff.categories)
    if ((row.gap() > Seconds{}) == slower && magnitude(row.gap()) >= worth_a_word * magnitude(gap)) rows.push_back(&row);
  for (std::size_t i = 0; i < std::min<std::size_t>(rows.size(), 3); ++i) {
    const DiffRow& row = *rows[i];
    const double part = row.gap().count() / gap.count();
    text += i == 0 ? ": " : ", ";
    // More than the whole gap: other categories make up for it.
    if (part > 1.0005)
      text += fmt::format("{} takes {} {}", row.name, to_text(Seconds{magnitude(row.gap())}), slower ? "more" : "less");
    else
      text += fmt::format("{} {}{}", part_text(part), i == 0 ? "of the gap is " : "", row.name);
    text += within(diff, row);
  }
  return text + ".";
}

/// So many of a block, one after the other.
StepTimes repeated(StepTimes block, std::int64_t layers) {
  const auto times = static_cast<double>(layers);
  block.time = times * block.time;
  for (StepOperation& operation : block.operations) {
    operation.count *= times;
    operation.time = times * operation.time;
    operation.beside = times * operation.beside;
  }
  return block;
}

}  // namespace

Pace pace_of(Seconds predicted, Seconds measured, Seconds step) {
  const Seconds gap = measured - predicted;
  if (magnitude(gap) <= std::max(same_size * predicted.count(), no_gap * step.count())) return Pace::as_predicted;
  return gap > Seconds{} ? Pace::late : Pace::early;
}

std::string_view name_of(Pace pace) { return pace == Pace::late ? "late" : pace == Pace::early ? "early" : "as predicted"; }

StepTimes step_of(const ProfiledOperations& profile) {
  const auto steps = static_cast<double>(profile.steps);
  StepTimes step{profile.time / steps, {}};
  for (const ProfiledOperation& o : profile.operations)
    step.operations.push_back({o.name, o.category, o.occurrences / steps, o.self / steps, o.beside / steps, o.flops, o.bytes, o.group, o.provenance, o.of_kernels, o.is_kernel});
  return step;
}

StepDiff diff_steps(const StepTimes& block, const StepTimes& profiled, std::int64_t layers) {
  StepTimes predicted = repeated(block, layers), measured = profiled;
  const std::vector<KernelPair> kernels = kernels_in_order(predicted.operations, measured.operations);
  agree_on_categories(kernels, predicted, measured);
  StepDiff diff;
  diff.layers = layers;
  diff.categories = categories_of(predicted, measured);
  for (const DiffRow& row : diff.categories) {
    diff.predicted += row.predicted.time;
    diff.measured += row.measured.time;
  }
  Matching{predicted.operations, measured.operations}.run(kernels, diff);
  const auto larger = [](const DiffRow& a, const DiffRow& b) { return magnitude(a.gap()) > magnitude(b.gap()); };
  std::ranges::stable_sort(diff.categories, larger);
  std::ranges::stable_sort(diff.operations, larger);
  std::ranges::stable_sort(diff.unmatched, std::greater{}, [](const UnmatchedOperation& one) { return one.operation.time; });
  const Seconds gap = diff.measured - diff.predicted;
  if (magnitude(gap) > no_gap * std::max(diff.predicted.count(), diff.measured.count()))
    for (std::vector<DiffRow>* rows : {&diff.categories, &diff.operations})
      for (DiffRow& row : *rows) row.share = row.gap().count() / gap.count();
  diff.sentence = sentence_of(diff);
  return diff;
}

}  // namespace podsim

// Compares what devices hold with a reference.
#include <algorithm>
#include <cmath>
#include <limits>

#include "sim/engine/numeric/rounding.hpp"
#include "sim/engine/numeric/reference_contents.hpp"
#include "sim/engine/numeric/storage.hpp"

namespace podsim {

namespace {

constexpr double infinite = std::numeric_limits<double>::infinity();

}  // namespace

/// One comparison.
class Reference::Comparer {
 public:
  Comparer(const Contents& contents, const BufferReader& read) : contents_{contents}, read_{read} {
    result_.bit_equal = result_.agrees = true;
    result_.outputs.resize(contents.arrays.size());
    result_.exact = std::all_of(contents.exact.begin(), contents.exact.end(), [](bool exact) { return exact; });
    for (std::size_t a = 0; a < contents.arrays.size(); ++a) result_.tolerance = std::max(result_.tolerance, contents.tolerance[a]);
  }

  Comparison run() {
    gather_judged();
    follow();
    judge();
    for (const Part& part : contents_.parts)
      if (!contents_.stop.requested() && !contents_.is_judged[part.array]) compare(part);
    return std::move(result_);
  }

 private:
  using Part = Contents::Part;
  using Array = std::vector<double>;

  [[nodiscard]] double number_at(const Part& part, std::span<const float> own, std::size_t index) const {
    double sum = number_in(own[index], part.dtype);
    for (const DeviceId other : part.addends) sum += number_in(read_(other, part.buffer)[index], part.dtype);
    return part.dtype == DType::s32 ? sum : static_cast<double>(static_cast<float>(sum));
  }

  // ---- Judged outputs ----

  /// Their arrays, put together from what devices hold of them.
  void gather_judged() {
    judged_.resize(contents_.arrays.size());
    for (const Part& part : contents_.parts) {
      if (!contents_.is_judged[part.array] || contents_.stop.requested()) continue;
      Array& array = judged_[part.array];
      const std::span<const float> own = read_(part.device, part.buffer);
      array.resize(contents_.arrays[part.array].size(), std::numeric_limits<double>::quiet_NaN());
      for_each_run<2>({&part.in_buffer, &part.in_array}, [&](std::int64_t count, const std::array<RunCursor, 2>& at) {
        for (std::int64_t i = 0; i < count; ++i) {
          const double value = number_at(part, own, static_cast<std::size_t>(at[0].offset() + i * at[0].stride()));
          double& held = array[static_cast<std::size_t>(at[1].offset() + i * at[1].stride())];
          copies_agree_ &= std::isnan(held) || held == value;
          held = value;
        }
      });
    }
  }

  void judge() {
    std::size_t next = contents_.arrays.size();  // in followed_
    for (const JudgedOutputs& judged : contents_.judged) {
      if (contents_.stop.requested()) return;
      std::vector<std::span<const double>> found, operands;
      for (const std::size_t output : judged.outputs) found.emplace_back(judged_[output]);
      for (const Array& array : judged.arrays) operands.emplace_back(followed_.empty() ? array : followed_[next++]);
      const RelativeResidual residual = residual_of(judged, operands, found);
      const bool holds = residual.why.empty() && residual.found <= residual.allowed && copies_agree_;
      result_.bit_equal = false;
      result_.agrees &= holds;
      result_.max_abs_error = std::max(result_.max_abs_error, residual.largest);
      if (!holds && result_.why.empty()) result_.why = copies_agree_ ? describe(judged, residual) : "devices hold different values of the same elements";
      if (is_worst(residual.found / residual.allowed)) {
        result_.max_rel_error = residual.found;
        result_.tolerance = residual.allowed;
        result_.is_residual = true;
        result_.worst.reset();
      }
    }
  }

  /// What is computed from them is expected of what devices hold of them: they may differ from the reference and be right.
  void follow() {
    if (!contents_.follow || contents_.stop.requested()) return;
    GivenArrays given;
    for (const JudgedOutputs& judged : contents_.judged)
      for (std::size_t i = 0; i < judged.outputs.size(); ++i) given[judged.nodes[i]] = judged_[judged.outputs[i]];
    auto arrays = contents_.follow(given);
    if (arrays) followed_ = *std::move(arrays);
  }

  // ---- Outputs by value ----

  bool is_worst(double part_of_tolerance) {
    if (!(part_of_tolerance > worst_)) return false;
    worst_ = part_of_tolerance;
    return true;
  }

  void compare(const Part& part) {
    const bool follows = !followed_.empty() && contents_.follows[part.array];
    const Array& array = follows ? followed_[part.array] : contents_.arrays[part.array];
    const double largest = contents_.largest[part.array], tolerance = contents_.tolerance[part.array];
    const bool exact = contents_.exact[part.array];
    const std::span<const float> own = read_(part.device, part.buffer);
    Comparison::Output& output = result_.outputs[part.array];
    for_each_run<2>({&part.in_buffer, &part.in_array}, [&](std::int64_t count, const std::array<RunCursor, 2>& at) {
      for (std::int64_t i = 0; i < count; ++i) {
        const std::int64_t index = at[0].offset() + i * at[0].stride();
        const double found = number_at(part, own, static_cast<std::size_t>(index));
        const double expected = array[static_cast<std::size_t>(at[1].offset() + i * at[1].stride())];
        if (!output.first) output.first = Comparison::Element{part.device, part.buffer, index, found, expected};
        const auto rounded = static_cast<float>(expected);
        const bool same_bits = part.dtype == DType::s32 ? found == expected
                                                        : found == static_cast<double>(stored_in(part.dtype, rounded));
        result_.bit_equal &= same_bits;
        result_.agrees &= same_bits || !exact;
        if (std::isnan(expected) ? std::isnan(found) : found == expected) continue;
        double difference = std::abs(found - expected);
        if (!std::isfinite(difference)) difference = infinite;  // a NaN compares with nothing: it must not slip through
        result_.max_abs_error = std::max(result_.max_abs_error, difference);
        const double relative = largest > 0 ? difference / largest : infinite;
        result_.agrees &= exact || relative <= tolerance;
        output.max_rel_error = std::max(output.max_rel_error, relative);
        if (is_worst(tolerance > 0 ? relative / tolerance : relative)) {
          result_.max_rel_error = relative;
          result_.tolerance = tolerance;
          result_.is_residual = false;
          result_.worst = Comparison::Element{part.device, part.buffer, index, found, expected};
        }
      }
    });
  }

  const Contents& contents_;
  const BufferReader& read_;
  Comparison result_;
  double worst_ = -1;  // the error in units of the tolerance
  std::vector<Array> judged_, followed_;
  bool copies_agree_ = true;
};

double Reference::widest_tolerance() const {
  const std::vector<double>& each = contents_->tolerance;
  return each.empty() ? 0 : *std::max_element(each.begin(), each.end());
}

Comparison Reference::compare(const Tensors& tensors) const {
  return compare([&](DeviceId device, BufferId buffer) -> std::span<const float> { return tensors.values[device.index()][buffer.index()]; });
}

Comparison Reference::compare(const BufferReader& read) const { return Comparer{*contents_, read}.run(); }

}  // namespace podsim

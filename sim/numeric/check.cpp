#include "sim/numeric/check.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "sim/base/rng.hpp"
#include "sim/numeric/executor.hpp"
#include "sim/schedule/validate.hpp"

namespace podsim {

bool exact_on_integers(const Schedule& schedule) {
  for (const Program& program : schedule.programs)
    for (const Buffer& buffer : program.buffers)
      if (buffer.dtype != DType::f32) return false;
  constexpr std::int64_t largest = 1 << 24;
  if (const auto* products = std::get_if<Products>(&schedule.computes))
    return std::all_of(products->begin(), products->end(), [](const Product& product) { return product.k <= largest / 16; });
  std::int64_t terms = 1;
  if (const auto* collective = std::get_if<Collective>(&schedule.computes))
    for (const AxisView& axis : collective->axes) terms *= axis.size;
  return terms <= largest / 4;
}

namespace {

constexpr std::uint64_t order_stream = stream_of("order");

class Checker {
 public:
  Checker(const Schedule& lowered, const CheckOptions& options) : schedule_{lowered}, options_{options} {
    for (const Program& program : lowered.programs)
      for (const Buffer& buffer : program.buffers) has_output_ |= buffer.role == Role::output;
  }

  Expected<CheckReport> run() {
    report_.devices = schedule_.mesh.devices();
    const Validation validation = validate(schedule_);
    report_.problems = validation.all();
    report_.matched = validation.shapes.empty() && validation.unmatched.empty();
    report_.deadlock_free = report_.matched && validation.deadlocks.empty();
    report_.race_free = report_.deadlock_free && validation.races.empty();
    if (!report_.deadlock_free) return std::move(report_);

    const Bytes besides{saturating_add(kept_bytes().count(), Reference::bytes_needed(schedule_).count())};
    Expected<std::unique_ptr<Executor>> executor = Executor::make(schedule_, options_.threads, {besides, options_.max_bytes});
    if (!executor) return executor.error();
    executor_ = *std::move(executor);

    report_.bit_equal = true;
    if (const Done ran = try_orders_on_integers(); !ran) return ran.error();
    if (computes_something())
      if (const Done ran = try_uniform_data(); !ran) return ran.error();
    report_.ok = report_.problems.empty() && report_.race_free && report_.bit_equal;
    return std::move(report_);
  }

 private:
  using Kept = std::vector<std::vector<float>>;  // per slot

  template <class... Args>
  void problem(fmt::format_string<Args...> format, Args&&... args) {
    report_.problems.push_back({{}, fmt::format(format, std::forward<Args>(args)...)});
  }
  bool computes_something() const { return !std::holds_alternative<std::monostate>(schedule_.computes); }
  NumericOptions numeric_options(Filling filling) const { return {options_.seed, filling, {}, options_.threads, options_.max_bytes}; }
  BufferReader reader() const {
    return [this](DeviceId device, BufferId buffer) { return executor_->values(device, buffer); };
  }

  /// What orders are compared by: the outputs; everything where there are none.
  bool is_result(const Buffer& buffer) const { return !has_output_ || buffer.role == Role::output; }
  Bytes kept_bytes() const {
    std::int64_t count = 0;
    for (const Program& program : schedule_.programs)
      for (const Buffer& buffer : program.buffers)
        if (is_result(buffer))
          count = saturating_add(count, saturating_multiply(size_of(buffer).count() / size_of(buffer.dtype).count(), size_of(program.devices)));
    return Bytes{saturating_multiply(count, sizeof(float))};
  }

  /// Calls body(device, buffer, position) for all results.
  template <class Body>
  void for_each_result(Body body) const {
    std::size_t position = 0;
    for (int d = 0; d < schedule_.mesh.devices(); ++d)
      if (const auto program = executor_->storage().program(DeviceId{d}))
        for (std::size_t b = 0; b < schedule_.programs[*program].buffers.size(); ++b)
          if (is_result(schedule_.programs[*program].buffers[b])) body(DeviceId{d}, BufferId{b}, position++);
  }
  std::string name(DeviceId device, BufferId buffer, std::int64_t element) const {
    return fmt::format("element {} of buffer {} on device {} ({})", element,
                       quoted(executor_->storage().buffer(executor_->storage().first_slot(device) + buffer.index()).name), device.value,
                       schedule_.mesh.name(device));
  }

  Done try_orders_on_integers() {
    if (const Done ran = executor_->run(options_.seed, Filling::integers, {}); !ran) return ran;
    ++report_.orders_tried;
    if (computes_something()) {
      const Expected<Reference> reference = Reference::make(schedule_, numeric_options(Filling::integers));
      if (!reference) return reference.error();
      const Comparison comparison = reference->compare(reader());
      if (exact_on_integers(schedule_) && !comparison.bit_equal) {
        report_.bit_equal = false;
        describe(comparison, "integers");
      } else {
        within_tolerance(comparison, "integers");
      }
    }
    if (options_.random_orders <= 0) return done();

    Kept first;
    for_each_result([&](DeviceId device, BufferId buffer, std::size_t) {
      const auto values = executor_->values(device, buffer);
      first.emplace_back(values.begin(), values.end());
    });
    for (int i = 0; i < options_.random_orders; ++i) {
      const std::uint64_t seed = counter_hash(options_.seed, order_stream, static_cast<std::uint64_t>(i));
      if (const Done ran = executor_->run(options_.seed, Filling::integers, {seed}); !ran) return ran;
      ++report_.orders_tried;
      compare_with(first, i);
    }
    return done();
  }

  void compare_with(const Kept& first, int random_order) {
    bool same = true;
    for_each_result([&](DeviceId device, BufferId buffer, std::size_t position) {
      const std::span<const float> values = executor_->values(device, buffer);
      const std::vector<float>& expected = first[position];
      if (!same || std::memcmp(values.data(), expected.data(), values.size_bytes()) == 0) return;  // bits, so that a NaN equals itself
      same = false;
      std::size_t e = 0;
      while (std::memcmp(&values[e], &expected[e], sizeof(float)) == 0) ++e;
      problem("the result depends on the order of tasks: {} is {} in program order and {} in random order {}",
              name(device, buffer, static_cast<std::int64_t>(e)), expected[e], values[e], random_order + 1);
    });
    report_.bit_equal &= same;
  }

  Done try_uniform_data() {
    if (const Done ran = executor_->run(options_.seed, Filling::uniform, {}); !ran) return ran;
    const Expected<Reference> reference = Reference::make(schedule_, numeric_options(Filling::uniform));
    if (!reference) return reference.error();
    const Comparison comparison = reference->compare(reader());
    report_.max_abs_error = comparison.max_abs_error;
    report_.max_rel_error = comparison.max_rel_error;
    report_.tolerance = comparison.tolerance;
    within_tolerance(comparison, "uniform data");
    return done();
  }

  void within_tolerance(const Comparison& comparison, std::string_view data) {
    if (!(comparison.max_rel_error <= comparison.tolerance)) describe(comparison, data);
  }

  void describe(const Comparison& comparison, std::string_view data) {
    if (!comparison.worst) return problem("on {} the result is not the expected one", data);
    problem("on {} the result is wrong: {} is {}, expected {}; the largest error is {:.3g} of the largest expected value, the tolerance {:.3g}", data,
            name(comparison.worst->device, comparison.worst->buffer, comparison.worst->index), comparison.worst->found, comparison.worst->expected,
            comparison.max_rel_error, comparison.tolerance);
  }

  const Schedule& schedule_;
  const CheckOptions& options_;
  bool has_output_ = false;
  std::unique_ptr<Executor> executor_;
  CheckReport report_;
};

}  // namespace

Expected<CheckReport> check(const Schedule& lowered, const CheckOptions& options) { return Checker{lowered, options}.run(); }

}  // namespace podsim

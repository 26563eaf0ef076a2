#include "sim/engine/numeric/check.hpp"

#include <fmt/format.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <optional>

#include "sim/base/rng.hpp"
#include "sim/engine/numeric/claims.hpp"
#include "sim/engine/numeric/executor.hpp"
#include "sim/engine/numeric/inputs.hpp"
#include "sim/engine/numeric/judged_outputs.hpp"
#include "sim/engine/numeric/reference_evaluator.hpp"
#include "sim/schedule/validate.hpp"

namespace podsim {

namespace {

constexpr std::uint64_t order_stream = stream_of("order"), second_stream = stream_of("second integers"), redrawn_stream = stream_of("drawn again");

/// The terms of which each element of an operation is a sum.
std::int64_t terms_of(const ReferenceProgram& program, const ReferenceNode& node) {
  const auto operand = [&]() -> const ReferenceNode& { return program.nodes[static_cast<std::size_t>(node.operands[0])]; };
  switch (node.kind) {
    case ReferenceKind::product:
    case ReferenceKind::lu_upper:
    case ReferenceKind::solve: return operand().extents.back();
    case ReferenceKind::attention: return 2 * node.extents.at(1);
    case ReferenceKind::attention_grad: return 5 * node.extents.at(1);
    default: return 1;
  }
}

/// Multiply-adds of a graph of operations, and of products alone, which a BLAS computes.
struct ClaimWork {
  std::int64_t graph = 0, products = 0;
};
ClaimWork work_of_claim(const Schedule& schedule) {
  ClaimWork work;
  if (const auto* reference = std::get_if<ReferenceProgram>(&schedule.computes))
    for (const ReferenceNode& node : reference->nodes)
      work.graph = saturating_add(work.graph, saturating_multiply(element_count(node.extents), terms_of(*reference, node)));
  if (const auto* products = std::get_if<Products>(&schedule.computes))
    for (const Product& product : *products)
      work.products = saturating_add(work.products, saturating_multiply(saturating_multiply(product.m, product.n), product.k));
  return work;
}

/// What the tasks of a compiled module compute, or its instructions one by one: elements that are read and written, and products. Calls are written out.
ClaimWork work_of_module(const Schedule& schedule) {
  constexpr double per_element = 5;  // of multiply-adds: fourier_v4 of validation/aot reads and writes 1.1e9 elements in 13 s of one core of a server, November 2026
  double elements = 0, products = 0;
  for (const Program& program : schedule.programs)
    for (const Task& task : program.tasks) {
      const double devices = size_of(program.devices);
      if (const auto* matmul = std::get_if<Matmul>(&task.op)) {
        const MatmulExtents extents = extents_of(*matmul);
        products += devices * static_cast<double>(extents.m) * static_cast<double>(extents.n) * static_cast<double>(extents.k);
      }
      const auto* local = std::get_if<Local>(&task.op);
      if (local == nullptr || local->kind != LocalKind::opaque) continue;
      products += devices * local->opaque.matrix.count() / 2;
      for (const auto* regions : {&local->reads, &local->writes})
        for (const Region& region : *regions) elements += per_element * devices * static_cast<double>(elements_of(region));
    }
  constexpr double most = 0x1p62;
  return {static_cast<std::int64_t>(std::min(elements, most)), static_cast<std::int64_t>(std::min(products, most))};
}

/// Whether the schedule is so small that running it once more costs next to nothing.
bool is_small(const Schedule& schedule) {
  constexpr Bytes buffers{std::int64_t{64} << 20};
  constexpr std::int64_t multiply_adds = std::int64_t{1} << 28;
  const ClaimWork work = work_of_claim(schedule);
  return work.graph <= multiply_adds && work.products <= multiply_adds && bytes_of_buffers(schedule) <= buffers;
}

constexpr const char *fractions_name = "uniform float32 data", *positive_name = "positive float32 data";

class Checker {
 public:
  Checker(const Schedule& lowered, const CheckOptions& options)
      : schedule_{lowered},
        options_{options},
        proof_{options.data == InputData::arange ? Filling::arange
               : options.data == InputData::ones ? Filling::ones
                                                 : Filling::integers},
        seed_{options.seed} {
    report_.data = options.data;
    report_.proven_on = data_name();
    for (const Program& program : lowered.programs)
      for (const Buffer& buffer : program.buffers) has_output_ |= buffer.role == Role::output;
  }

  Expected<CheckReport> run() {
    report_.devices = schedule_.mesh.devices();
    // Known before anything is looked at, which of a schedule too large to execute may take minutes.
    const Bytes besides{saturating_add(kept_bytes().count(), Reference::bytes_needed(schedule_).count())};
    if (const Status room = fits(Bytes{saturating_add(bytes_of_buffers(schedule_).count(), besides.count())}, options_.max_bytes,
                                 fmt::format("executing the schedule on {} devices", schedule_.mesh.devices()));
        !options_.structure_only && !room)
      return Diagnostic{{}, room.error().message + "; its structure can be checked alone"};
    begin("matching, races, deadlock");
    const Validation validation = validate(schedule_, options_.stop);
    report_.problems = validation.all();
    report_.matched = validation.shapes.empty() && validation.unmatched.empty();
    report_.deadlock_free = report_.matched && validation.deadlocks.empty();
    report_.race_free = report_.deadlock_free && validation.races.empty();
    if (validation.cancelled) return cancelled_work();
    if (options_.structure_only) report_.ok = report_.race_free && report_.problems.empty();
    if (options_.structure_only || !report_.deadlock_free) return std::move(report_);

    const auto progress = [this](std::size_t finished, std::size_t activities) {
      tell(static_cast<double>(finished) / static_cast<double>(activities), true);
    };
    Expected<std::unique_ptr<Executor>> executor = Executor::make(schedule_, options_.threads, {besides, options_.max_bytes}, {options_.stop, progress});
    if (!executor) return executor.error();
    executor_ = *std::move(executor);

    report_.bit_equal = true;
    report_.inexact = why_inexact(schedule_, proof_);
    for (const auto step : {&Checker::prove_in_program_order, &Checker::try_random_orders, &Checker::prove_on_other_integers, &Checker::prove_on_other_matrices,
                            &Checker::prove_on_fractions, &Checker::try_uniform_data})
      if (const Status ran = (this->*step)(); !ran) {
        if (ran.error().cause != Cause::data) return ran.error();
        report_.problems.push_back(ran.error());  // of the schedule: what it claims for any data is false for this
        report_.bit_equal = false;
        break;
      }
    judge_claim();
    report_.not_proven = nothing_proven_ && report_.problems.empty() && report_.race_free && report_.bit_equal;
    if (nothing_proven_) report_.problems.push_back(*std::move(nothing_proven_));
    report_.ok = report_.problems.empty() && report_.race_free && report_.bit_equal;
    return std::move(report_);
  }

 private:
  using Kept = std::vector<std::vector<float>>;  // per slot

  template <class... Args>
  void problem(fmt::format_string<Args...> format, Args&&... args) {
    report_.problems.push_back({{}, fmt::format(format, std::forward<Args>(args)...)});
  }
  void begin(std::string doing) {
    doing_ = std::move(doing);
    tell(0, false);
  }
  void tell(double part, bool has_part) const {
    if (options_.progress) options_.progress({doing_, part, has_part});
  }
  NumericOptions numeric_options(std::uint64_t seed, Filling filling) const {
    return {seed, filling, {}, options_.threads, options_.max_bytes, options_.stop};
  }
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
          count = saturating_add(count, saturating_multiply(words_in(buffer), size_of(program.devices)));
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
  const Buffer& buffer_of(DeviceId device, BufferId buffer) const {
    return executor_->storage().buffer(executor_->storage().first_slot(device) + buffer.index());
  }
  std::string name(DeviceId device, BufferId id, std::int64_t word) const {
    const Buffer& buffer = buffer_of(device, id);
    const std::int64_t words = words_of(buffer.dtype);
    return fmt::format("{}element {} of buffer {} on device {} ({})", words == 1 ? "" : word % words == 0 ? "the real part of " : "the imaginary part of ",
                       word / words, quoted(buffer.name), device.value, schedule_.mesh.name(device));
  }

  std::string text_of(DeviceId device, BufferId buffer, float word) const {
    return buffer_of(device, buffer).dtype == DType::s32 ? fmt::format("{}", std::bit_cast<std::int32_t>(word)) : fmt::format("{}", word);
  }

  /// The reference for inputs of a seed. In a proof, of the first seeds one on which float32 computes well: where a divisor happens to be close to
  /// zero the tolerance would be as wide as the result.
  Expected<Reference> reference_of(std::uint64_t& seed, Filling& filling, std::string& data) {
    constexpr int draws = 8, most_branch_draws = 256;
    constexpr double wide = 0x1p-7;
    begin(fmt::format("the expected result on {}", data));
    Expected<Reference> reference = Reference::make(schedule_, numeric_options(seed, filling));
    const std::uint64_t given = seed;
    // A module may take other branches on these than the schedule has.
    const bool is_module = std::holds_alternative<SourceResults>(schedule_.computes), is_asked = filling == Filling::arange || filling == Filling::ones;
    for (int draw = 1; is_module && !is_asked && draw < most_branch_draws && !reference && reference.error().cause == Cause::data; ++draw) {
      seed = counter_hash(given, redrawn_stream, static_cast<std::uint64_t>(draw));
      reference = Reference::make(schedule_, numeric_options(seed, filling));
    }
    const bool drawn = filling == Filling::integers || filling == Filling::fractions || filling == Filling::positive;
    // A graph whose reference takes long is proven on other numbers soon, rather than on integers at last.
    const bool is_graph = std::holds_alternative<ReferenceProgram>(schedule_.computes);
    const int drawn_at_most = is_graph && filling == Filling::integers && !is_small(schedule_) ? 1 : draws;
    for (int draw = 1; drawn && draw < drawn_at_most && reference && reference->widest_tolerance() > wide; ++draw) {
      const std::uint64_t again = counter_hash(options_.seed, redrawn_stream, static_cast<std::uint64_t>(draw));
      auto other = Reference::make(schedule_, numeric_options(again, filling));
      if (!other && other.error().cause == Cause::data) continue;
      seed = again;
      reference = std::move(other);
    }
    const bool is_wide = filling != Filling::uniform && reference && reference->widest_tolerance() > wide;
    if (is_wide && drawn && (is_module || is_graph) && filling != Filling::positive && (filling == Filling::fractions || proof_ == filling)) {
      // A module or a graph may compute badly on any integers, as the softmax of large scores; numbers below 1 are what it is made for. And on numbers of either sign: half of the
      // second moments of Adam are none then, and whether the root of one near 0 is a number, roundings decide.
      const bool is_proof = proof_ == filling;
      filling = filling == Filling::integers ? Filling::fractions : Filling::positive;
      data = filling == Filling::fractions ? fractions_name : positive_name;
      if (is_proof) proof_ = filling, report_.proven_on = data;
      seed = options_.seed;
      return reference_of(seed, filling, data);
    }
    if (is_wide) {
      report_.proof_tolerance = reference->widest_tolerance();
      nothing_proven_ = Diagnostic{{}, fmt::format("on {} nothing is proven: {}; other data (--data) or other sizes may prove something", data,
                                                   std::isinf(report_.proof_tolerance)
                                                       ? "float32 overflows, or roundings decide what is a number"
                                                       : fmt::format("roundings of float32 may change the result by {:.3g} of its largest value", report_.proof_tolerance))};
    }
    return reference;
  }

  /// In program order; what the buffers hold then against the reference of the same inputs. `data`: in the end those it ran on.
  Expected<Comparison> run_and_compare(std::uint64_t& seed, Filling filling, std::string& data) {
    const Expected<Reference> reference = reference_of(seed, filling, data);
    if (!reference) return reference.error();
    begin(fmt::format("{} in program order", data));
    if (const Status ran = executor_->run(seed, filling, {}); !ran) return ran.error();
    const Comparison comparison = reference->compare(reader());
    if (options_.stop.requested()) return cancelled_work();
    return comparison;
  }

  [[nodiscard]] std::string data_name() const { return std::string{name_of(options_.data)}; }
  /// The data of the proof are what was asked for, not drawn.
  [[nodiscard]] bool is_given() const { return proof_ == Filling::arange || proof_ == Filling::ones; }

  Status prove_in_program_order() {
    if (!claims_something(schedule_)) {
      begin(fmt::format("{} in program order", data_name()));
      if (const Status ran = executor_->run(seed_, proof_, {}); !ran) return ran;
    } else if (const Status proven = prove(seed_, proof_, data_name()); !proven) {
      return proven;
    }
    ++report_.orders_tried;
    if (is_given()) keep_outputs();
    return success();
  }

  /// The same with other integers: where ranges are small or results few, values may be equal by chance.
  Status prove_on_other_integers() {
    if (!claims_something(schedule_) || !is_small(schedule_) || !report_.bit_equal || proof_ != Filling::integers) return success();
    std::uint64_t seed = counter_hash(options_.seed, second_stream, 0);
    return prove(seed, Filling::integers, "other integers");
  }

  /// Which rows change places depends on the data: a mistake in how they do shows only where it matters.
  Status prove_on_other_matrices() {
    constexpr int matrices = 12;
    const auto* reference = std::get_if<ReferenceProgram>(&schedule_.computes);
    if (reference == nullptr || judged_outputs(*reference).empty() || !is_small(schedule_) || proof_ != Filling::integers) return success();
    for (int i = 1; i <= matrices && report_.bit_equal; ++i) {
      std::uint64_t seed = counter_hash(options_.seed, second_stream, static_cast<std::uint64_t>(i));
      if (const Status proven = prove(seed, Filling::integers, fmt::format("other integers, {} of {}", i, matrices)); !proven) return proven;
    }
    return success();
  }

  /// Integers may level off what is not exact, and the tolerance of narrow types may hide what is lost: numbers in between, in float32.
  Status prove_on_fractions() {
    if (!claims_something(schedule_) || report_.inexact.empty() || !report_.bit_equal || proof_ != Filling::integers) return success();
    const auto rounds = [](const Buffer& buffer) { return is_narrow(buffer.dtype); };
    const bool any = std::any_of(schedule_.programs.begin(), schedule_.programs.end(),
                                 [&](const Program& program) { return std::any_of(program.buffers.begin(), program.buffers.end(), rounds); });
    std::uint64_t seed = options_.seed;
    return any ? prove(seed, Filling::fractions, fractions_name) : success();
  }

  Status prove(std::uint64_t& seed, Filling filling, std::string data) {
    const Expected<Comparison> comparison = run_and_compare(seed, filling, data);
    if (!comparison) return comparison.error();
    if (is_given()) note_error(*comparison);
    if (!comparison->exact && report_.inexact.empty() && std::holds_alternative<SourceResults>(schedule_.computes))
      report_.inexact = "float32 rounds what the module computes";
    if (!nothing_proven_ && comparison->tolerance > 0 && comparison->max_rel_error * report_.proof_tolerance >= report_.proof_rel_error * comparison->tolerance)
      report_.proof_rel_error = comparison->max_rel_error, report_.proof_tolerance = comparison->tolerance;
    if (comparison->agrees) return success();
    report_.bit_equal = false;
    if (!comparison->why.empty())
      problem("on {} the result is wrong: {}", data, comparison->why);
    else if (comparison->worst)
      problem("on {} the result is wrong: {} is {}, expected {}", data,
              name(comparison->worst->device, comparison->worst->buffer, comparison->worst->index), comparison->worst->found,
              comparison->worst->expected);
    else
      problem("on {} the result is not the expected one", data);
    return success();
  }

  void note_error(const Comparison& comparison) {
    report_.max_abs_error = comparison.max_abs_error;
    report_.max_rel_error = comparison.max_rel_error;
    report_.tolerance = comparison.tolerance;
    report_.is_residual = comparison.is_residual;
  }

  /// Outputs of few elements, put together from the shards of all devices.
  void keep_outputs() {
    for (int d = 0; d < schedule_.mesh.devices(); ++d) {
      const auto program = executor_->storage().program(DeviceId{d});
      if (!program) continue;
      const std::vector<Buffer>& buffers = schedule_.programs[*program].buffers;
      for (std::size_t b = 0; b < buffers.size(); ++b)
        if (buffers[b].role == Role::output && data_elements(buffers[b]) <= most_values_of_output) keep(DeviceId{d}, buffers[b], BufferId{b});
    }
  }
  void keep(DeviceId device, const Buffer& buffer, BufferId id) {
    auto& outputs = report_.outputs;
    auto output = std::find_if(outputs.begin(), outputs.end(), [&](const CheckedOutput& one) { return one.name == buffer.tensor; });
    if (output == outputs.end()) {
      std::vector<std::int64_t> extents = buffer.unpadded;
      for (std::size_t i = 0; buffer.unpadded.empty() && i < buffer.extents.size(); ++i) {
        extents.push_back(buffer.extents[i]);
        for (const AxisView& axis : buffer.sharding[i]) extents.back() *= axis.size;
      }
      std::vector<double> values(static_cast<std::size_t>(words_of(buffer.dtype) * data_elements(buffer)));
      output = outputs.insert(outputs.end(), {buffer.tensor, std::move(extents), buffer.dtype, std::move(values)});
    }
    if (static_cast<std::int64_t>(output->values.size()) != words_of(buffer.dtype) * data_elements(buffer)) return;  // two shapes of one tensor
    const ShardData data = data_of_shard(schedule_.mesh, buffer, device);
    const Layout in_buffer = in_words(data.in_buffer, buffer.dtype), in_tensor = in_words(data.in_tensor, buffer.dtype);
    const std::span<const float> values = executor_->values(device, id);
    for_each_run<2>({&in_buffer, &in_tensor}, [&](std::int64_t count, const std::array<RunCursor, 2>& at) {
      for (std::int64_t i = 0; i < count; ++i)
        output->values[static_cast<std::size_t>(at[1].offset() + i * at[1].stride())] =
            number_in(values[static_cast<std::size_t>(at[0].offset() + i * at[0].stride())], buffer.dtype);
    });
  }

  /// Random orders on the integers that the buffers hold the results of.
  Status try_random_orders() {
    if (options_.random_orders <= 0) return success();
    Kept first;
    for_each_result([&](DeviceId device, BufferId buffer, std::size_t) {
      const auto values = executor_->values(device, buffer);
      first.emplace_back(values.begin(), values.end());
    });
    for (int i = 0; i < options_.random_orders; ++i) {
      begin(fmt::format("random order {} of {}", i + 1, options_.random_orders));
      const std::uint64_t seed = counter_hash(options_.seed, order_stream, static_cast<std::uint64_t>(i));
      if (const Status ran = executor_->run(seed_, proof_, {seed}); !ran) return ran;
      ++report_.orders_tried;
      compare_with(first, i);
    }
    return success();
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
              name(device, buffer, static_cast<std::int64_t>(e)), text_of(device, buffer, expected[e]), text_of(device, buffer, values[e]), random_order + 1);
    });
    report_.bit_equal &= same;
  }

  Status try_uniform_data() {
    if (!claims_something(schedule_) || is_given()) return success();
    std::uint64_t seed = options_.seed;
    std::string data = "uniform data";
    const Expected<Comparison> comparison = run_and_compare(seed, Filling::uniform, data);
    if (!comparison) return comparison.error();
    note_error(*comparison);
    for (const Comparison::Output& output : comparison->outputs) {
      if (!output.first) continue;
      const Program& program = schedule_.programs[*executor_->storage().program(output.first->device)];
      report_.errors.push_back({program.buffers[output.first->buffer.index()].tensor, output.max_rel_error, output.first->found, output.first->expected});
    }
    if (comparison->agrees) return success();
    if (!comparison->why.empty()) {
      problem("on uniform data the result is wrong: {}", comparison->why);
      return success();
    }
    const Comparison::Element worst = comparison->worst.value_or(Comparison::Element{});
    problem("on uniform data the result is wrong: {} is {}, expected {}; the largest error is {:.3g} of the largest expected value, the tolerance {:.3g}",
            name(worst.device, worst.buffer, worst.index), worst.found, worst.expected, comparison->max_rel_error, comparison->tolerance);
    return success();
  }

  void judge_claim() {
    report_.compared = claim_of(schedule_);
    if (!claims_something(schedule_)) return problem("no result was compared: the schedule does not say what it computes");
    std::vector<Diagnostic> unclaimed = unclaimed_outputs(schedule_);
    std::move(unclaimed.begin(), unclaimed.end(), std::back_inserter(report_.problems));
  }

  const Schedule& schedule_;
  const CheckOptions& options_;
  Filling proof_;
  std::uint64_t seed_;  // of the inputs of the proof
  bool has_output_ = false;
  std::optional<Diagnostic> nothing_proven_;  // why; a problem only once it is known whether there are others
  std::string doing_;
  std::unique_ptr<Executor> executor_;
  CheckReport report_;
};

}  // namespace

std::string_view name_of(InputData data) {
  constexpr std::array<std::string_view, 3> names{"integers", "arange", "ones"};
  return names[static_cast<std::size_t>(data)];
}

double work_of_check(const Schedule& lowered, const CheckOptions& options) {
  constexpr double product_speed = 64;  // of a BLAS, beside an operation of a graph: measured on one core of a server, 2.5e10 beside 4.6e8 in a second, November 2026
  if (options.structure_only) return 0;
  const ClaimWork work = work_of_claim(lowered);
  const double runs = 2.0 + options.random_orders;  // on integers and on uniform data, in program order and in others
  if (std::holds_alternative<SourceResults>(lowered.computes)) {
    constexpr double references = 2 * 4;  // on both data: the result, and three with other roundings, whose products are of absolute values too
    const ClaimWork of_module = work_of_module(lowered);
    return (runs + references) * static_cast<double>(of_module.graph) + (runs + 2 * references) * static_cast<double>(of_module.products) / product_speed;
  }
  const double graph = static_cast<double>(work.graph), products = static_cast<double>(work.products);
  return 2 * graph + (runs * graph + (runs + 2) * products) / product_speed;
}

Expected<CheckReport> check(const Schedule& lowered, const CheckOptions& options) { return Checker{lowered, options}.run(); }

}  // namespace podsim

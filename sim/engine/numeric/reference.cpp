// What a schedule should have computed.
#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <set>

#include "sim/base/invariant.hpp"
#include "sim/base/rng.hpp"
#include "sim/engine/numeric/collective_reference.hpp"
#include "sim/engine/numeric/inputs.hpp"
#include "sim/engine/numeric/kernels.hpp"
#include "sim/engine/numeric/numeric_engine.hpp"
#include "sim/engine/numeric/reference_contents.hpp"
#include "sim/engine/numeric/reference_evaluator.hpp"
#include "sim/engine/numeric/rounding.hpp"
#include "sim/engine/numeric/storage.hpp"
#include "sim/schedule/submesh.hpp"
#include "sim/schedule/validate.hpp"

namespace podsim {

namespace {

/// The least significant digits that a store of a result keeps; those of bf16 if any buffer is of that.
int digits_kept(const Schedule& schedule) {
  int digits = digits_of(DType::f32);
  for (const Program& program : schedule.programs) {
    const auto stores = [&](const Region& region) { digits = std::min(digits, digits_of(program.buffers[region.buffer.index()].dtype)); };
    for (const Buffer& buffer : program.buffers)
      if (buffer.dtype == DType::bf16) digits = std::min(digits, digits_of(DType::bf16));
    for (const Task& task : program.tasks) {
      if (const auto* matmul = std::get_if<Matmul>(&task.op)) stores(matmul->out);
      if (const auto* shift = std::get_if<Shift>(&task.op); shift != nullptr && shift->combine == Combine::add) stores(shift->target);
      if (const auto* recv = std::get_if<Recv>(&task.op); recv != nullptr && recv->combine == Combine::add) stores(recv->target);
      const auto* local = std::get_if<Local>(&task.op);
      if (local != nullptr && traits_of(local->kind).role == LocalRole::compute)
        for (const Region& written : local->writes) stores(written);
    }
  }
  return digits;
}

/// All devices of a program, in order.
template <class Body>
void for_each_device(const Program& program, Body body) {
  for (const DeviceSet::Interval& interval : program.devices.intervals)
    for (int d = interval.first; d < interval.last; ++d) body(DeviceId{d});
}

std::int64_t elements_of(const Buffer& buffer) { return size_of(buffer).count() / size_of(buffer.dtype).count(); }

/// A collective on words: complex numbers have one more dimension.
Collective on_words(const Collective& collective, const Program& program) {
  Collective result = collective;
  for (Region* region : {&result.input, &result.output})
    if (const std::int64_t words = words_of(program.buffers[region->buffer.index()].dtype); words > 1) region->dims.push_back(all(words));
  return result;
}

}  // namespace

/// Builds the contents for one schedule.
class Reference::Builder {
 public:
  Builder(const Schedule& lowered, const NumericOptions& options)
      : schedule_{lowered}, options_{options}, inputs_{lowered, options.seed, options.filling, options.stop}, pool_{options.threads} {}

  Expected<std::shared_ptr<const Contents>> build() {
    if (auto problems = check_shapes(schedule_); !problems.empty()) return problems.front();
    if (const Status room = fits(Reference::bytes_needed(schedule_), options_.max_bytes, "the reference result"); !room) return room.error();
    const Status built = std::visit(Overloaded{
                                        [](std::monostate) -> Status {
                                          return Diagnostic{{}, "the schedule does not say what it computes"};
                                        },
                                        [&](const Products& products) { return add(program_of(products), " of the product"); },
                                        [&](const Collective& collective) { return add(collective); },
                                        [&](const ReferenceProgram& program) { return add(program, " of the reference"); },
                                        [&](SourceResults) { return add_source_results(); },
                                    },
                                    schedule_.computes);
    if (!built) return built.error();
    if (options_.stop.requested()) return cancelled_work();
    find_largest();
    find_exact();
    find_tolerance();
    contents_.stop = options_.stop;
    if (options_.stop.requested()) return cancelled_work();
    return std::make_shared<const Contents>(std::move(contents_));
  }

 private:
  /// Every output of products and graphs is a result of its own, a collective is one on all devices.
  void find_largest() {
    for (const std::vector<double>& array : contents_.arrays) {
      double& largest = contents_.largest.emplace_back(0);
      for (const double value : array)
        if (std::isfinite(value)) largest = std::max(largest, std::abs(value));
    }
    if (!contents_.largest.empty() && std::holds_alternative<Collective>(schedule_.computes))
      std::fill(contents_.largest.begin(), contents_.largest.end(), *std::max_element(contents_.largest.begin(), contents_.largest.end()));
  }

  // ---- Tolerances ----

  void find_exact() {
    contents_.exact.assign(contents_.arrays.size(), options_.filling == Filling::integers);  // whose range is made for products and collectives
    const auto* given = std::get_if<ReferenceProgram>(&schedule_.computes);
    const auto* products = std::get_if<Products>(&schedule_.computes);
    const bool known = options_.filling == Filling::arange || options_.filling == Filling::ones;
    if (given != nullptr || (products != nullptr && known)) {
      const ReferenceProgram program = given != nullptr ? *given : program_of(*products);
      const ExactRange range = exactness(program, schedule_.mesh, options_.filling);
      for (std::size_t o = 0; o < program.outputs.size(); ++o) contents_.exact[o] = range.exact[static_cast<std::size_t>(program.outputs[o].second)];
    } else if (known) {  // a collective: nothing is negative, so no partial sum exceeds the sum
      for (std::size_t a = 0; a < contents_.arrays.size(); ++a) contents_.exact[a] = contents_.largest[a] <= 0x1p24;
    }
    if (std::holds_alternative<SourceResults>(schedule_.computes)) contents_.exact.assign(contents_.arrays.size(), source_is_exact_ && options_.filling != Filling::uniform);
    for (const Contents::Part& part : contents_.parts)
      if (part.dtype == DType::s32 || part.dtype == DType::s8) contents_.exact[part.array] = true;
  }

  /// The relative size of one rounding, and how often a partial sum is rounded.
  struct Roundings {
    double unit = 0x1p-24;
    int stores = 0;  // of a partial sum narrower than float32
  };

  /// See Comparison.
  void find_tolerance() {
    contents_.is_judged.assign(contents_.arrays.size(), false);
    for (const JudgedOutputs& judged : contents_.judged)
      for (const std::size_t output : judged.outputs) contents_.is_judged[output] = true;
    bool all_exact = true;  // or judged
    for (std::size_t a = 0; a < contents_.exact.size(); ++a) all_exact = all_exact && (contents_.exact[a] || contents_.is_judged[a]);
    Roundings roundings;
    const int digits = options_.filling == Filling::uniform ? digits_kept(schedule_) : digits_of(DType::f32);
    if (digits < digits_of(DType::f32)) roundings = {std::ldexp(1.0, -digits - 1), stores_of_partial_sums(schedule_, options_.stop)};
    const double least = roundings.stores > 0 ? std::ldexp(1.0 + roundings.stores, -digits) : 1e-5;
    contents_.tolerance.assign(contents_.arrays.size(), least);
    for (std::size_t a = 0; a < contents_.exact.size(); ++a)
      if (contents_.exact[a]) contents_.tolerance[a] = 0;
    if (const auto* program = std::get_if<ReferenceProgram>(&schedule_.computes); program != nullptr && !all_exact) add_noise(*program, roundings);
    if (std::holds_alternative<SourceResults>(schedule_.computes) && (!all_exact || !source_is_exact_)) add_noise_of_source();
  }

  /// Widens tolerances to what random roundings of that size do to the results.
  void add_noise(const ReferenceProgram& program, const Roundings& roundings) {
    constexpr double room = 8;
    constexpr std::size_t cheap = 1 << 16, few = 256;
    std::vector<int> depth(program.nodes.size(), 0);  // results on the longest path, each rounded at least once
    int deepest = 1;
    std::size_t elements = 0;
    for (std::size_t n = 0; n < program.nodes.size(); ++n) {
      for (const int operand : program.nodes[n].operands) depth[n] = std::max(depth[n], depth[static_cast<std::size_t>(operand)] + 1);
      deepest = std::max(deepest, depth[n]);
      elements += static_cast<std::size_t>(element_count(program.nodes[n].extents));
    }
    GivenArrays given;  // judged ones: what follows from them is computed from what devices hold
    for (std::size_t o = 0; o < program.outputs.size(); ++o)
      if (contents_.is_judged[o]) given[program.outputs[o].second] = contents_.arrays[o];
    Noise noise{options_.seed, roundings.unit * std::max(1.0, static_cast<double>(1 + roundings.stores) / deepest)};
    // Of few elements, some trial has to show what may happen; of many, the largest does in each.
    std::size_t fewest = cheap;
    for (const std::vector<double>& array : contents_.arrays) fewest = std::min(fewest, array.size());
    const int trials = elements < cheap ? 6 : fewest < few ? 4 : 1;
    for (int trial = 0; trial < trials; ++trial) {
      noise.seed = counter_hash(options_.seed, stream_of("roundings"), static_cast<std::uint64_t>(trial));
      const auto disturbed = evaluate(program, schedule_.mesh, inputs_of(inputs_), pool_, options_.stop, noise, given);
      if (!disturbed || options_.stop.requested()) return;
      for (std::size_t a = 0; a < contents_.arrays.size(); ++a) {
        double most = 0;
        for (std::size_t i = 0; i < contents_.arrays[a].size(); ++i)
          most = std::max(most, difference_of((*disturbed)[a][i], contents_.arrays[a][i]));
        if (contents_.largest[a] > 0 && !contents_.exact[a] && !contents_.is_judged[a])
          contents_.tolerance[a] = std::max(contents_.tolerance[a], two_digits(room * most / contents_.largest[a]));
      }
    }
  }

  void add_noise_of_source() {
    constexpr double room = 8;
    constexpr int trials = 3;
    for (int trial = 0; trial < trials; ++trial) {
      const std::uint64_t seed = counter_hash(options_.seed, stream_of("roundings"), static_cast<std::uint64_t>(trial));
      const auto disturbed = schedule_.source->results(source_inputs_, SourceModule::Roundings{seed, options_.filling != Filling::uniform}, options_.stop);
      if (!disturbed) return;
      for (std::size_t a = 0; a < contents_.arrays.size(); ++a) {
        double most = 0;
        std::size_t at = 0;
        for (const auto& of_device : disturbed->outputs)
          for (const double value : of_device[a])
            most = std::max(most, difference_of(value, contents_.arrays[a][at++]));
        // Whole numbers of which roundings decide (which of two elements is the larger one) prove nothing.
        if (contents_.exact[a] && most > 0) contents_.exact[a] = false, contents_.tolerance[a] = std::numeric_limits<double>::infinity();
        if (contents_.largest[a] > 0 && !contents_.exact[a]) contents_.tolerance[a] = std::max(contents_.tolerance[a], two_digits(room * most / contents_.largest[a]));
      }
    }
  }

  /// Infinite where roundings make a NaN or an infinity of a number, or the other way round.
  static double difference_of(double disturbed, double value) {
    if (disturbed == value || (std::isnan(disturbed) && std::isnan(value))) return 0;
    const double difference = std::abs(disturbed - value);
    return std::isnan(difference) ? std::numeric_limits<double>::infinity() : difference;
  }

  /// Rounded up, so that it does not depend on the order of additions in a product.
  static double two_digits(double value) {
    if (!(value > 0) || !std::isfinite(value)) return value;
    const double unit = std::pow(10, std::floor(std::log10(value)) - 1);
    return std::stod(fmt::format("{:.1e}", std::ceil(value / unit) * unit));
  }

  // ---- The source of a schedule ----

  /// An array for each output: those of all devices, one after the other.
  Status add_source_results() {
    const Program& program = schedule_.programs[0];
    const auto numbers_of = [](std::span<const float> words, DType dtype) {
      SourceModule::Values values;
      for (const float word : words) values.push_back(number_in(word, dtype));
      return values;
    };
    std::vector<float> shard;
    for_each_device(program, [&](DeviceId device) {
      std::vector<SourceModule::Values>& inputs = source_inputs_.emplace_back();
      for (const Buffer& buffer : program.buffers) {
        if (buffer.role != Role::input) continue;
        shard.resize(static_cast<std::size_t>(words_in(buffer)));
        inputs_.fill_shard(buffer, device, shard.data());
        inputs.push_back(numbers_of(shard, buffer.dtype));
      }
    });
    auto results = schedule_.source->results(source_inputs_, {}, options_.stop);
    if (!results) return Diagnostic{results.error().where, results.error().message, results.error().cause};
    source_is_exact_ = results->exact;
    std::size_t output = 0;
    for (std::size_t b = 0; b < program.buffers.size(); ++b) {
      const Buffer& buffer = program.buffers[b];
      if (buffer.role != Role::output) continue;
      std::vector<double>& array = contents_.arrays.emplace_back();
      std::size_t position = 0;
      for_each_device(program, [&](DeviceId device) {
        const Layout whole = contiguous(words_in(buffer));
        Layout in_array = whole;
        in_array.offset = static_cast<std::int64_t>(array.size());
        contents_.parts.push_back({device, BufferId{b}, carried_in(options_.filling, buffer.dtype), whole, in_array, output});
        const SourceModule::Values& values = results->outputs[position++][output];
        PODSIM_ASSERT(static_cast<std::int64_t>(values.size()) == words_in(buffer));
        array.insert(array.end(), values.begin(), values.end());
      });
      ++output;
    }
    return success();
  }

  // ---- Graphs of operations, products among them ----

  Status add(const ReferenceProgram& program, std::string_view whose) {
    for (const ReferenceNode& node : program.nodes) {
      if (node.kind != ReferenceKind::input) continue;
      const Expected<const Buffer*> held = input_of(node, whose);
      if (!held) return held.error();
    }
    for (const auto& [tensor, node] : program.outputs) {
      const Extents& extents = program.nodes[static_cast<std::size_t>(node)].extents;
      if (Status held = add_outputs(tensor, element_count(extents), program.nodes[static_cast<std::size_t>(node)].complex, whose); !held) return held;
      contents_.arrays.emplace_back();  // parts count them
    }
    contents_.judged = judged_outputs(program);
    ReferenceProgram with_operands = program;
    for (const JudgedOutputs& judged : contents_.judged)
      for (const int operand : judged.operands) with_operands.outputs.emplace_back("", operand);
    Expected<std::vector<std::vector<double>>> values = evaluate(with_operands, schedule_.mesh, inputs_of(inputs_), pool_, options_.stop);
    if (!values) return values.error();
    std::size_t next = program.outputs.size();
    for (JudgedOutputs& judged : contents_.judged)
      for (std::size_t i = 0; i < judged.operands.size(); ++i) judged.arrays.push_back(std::move((*values)[next++]));
    values->resize(program.outputs.size());
    contents_.arrays = *std::move(values);
    find_followers(program, with_operands);
    return success();
  }

  /// Outputs and operands that are computed from judged ones.
  void find_followers(const ReferenceProgram& program, const ReferenceProgram& with_operands) {
    std::set<int> from_judged;
    for (const JudgedOutputs& judged : contents_.judged)
      for (const std::size_t output : judged.outputs) from_judged.insert(program.outputs[output].second);
    const std::set<int> judged_nodes = from_judged;
    for (std::size_t n = 0; n < program.nodes.size(); ++n)
      if (std::any_of(program.nodes[n].operands.begin(), program.nodes[n].operands.end(), [&](int o) { return from_judged.contains(o); }))
        from_judged.insert(static_cast<int>(n));
    bool any = false;
    for (const auto& [tensor, node] : program.outputs) {
      contents_.follows.push_back(from_judged.contains(node) && !judged_nodes.contains(node));
      any |= contents_.follows.back();
    }
    for (const JudgedOutputs& judged : contents_.judged)
      any |= std::any_of(judged.operands.begin(), judged.operands.end(), [&](int o) { return from_judged.contains(o); });
    if (!any) return;
    // Of schedule and options of its own: a reference outlives its builder.
    contents_.follow = [lowered = std::make_shared<const Schedule>(schedule_), options = options_, with_operands](const GivenArrays& given) {
      Builder again{*lowered, options};
      return evaluate(with_operands, lowered->mesh, again.inputs_of(again.inputs_), again.pool_, options.stop, {}, given);
    };
  }

  /// Arrays of input nodes whose buffers exist.
  ReferenceInputs inputs_of(const InputMaker& inputs) {
    return [&inputs, this](const ReferenceNode& node) {
      const Buffer& buffer = **input_of(node, "");
      return inputs.global_tensor(buffer, element_count(node.extents) == global_elements(buffer), pool_);
    };
  }

  static bool has_elements(const Buffer& buffer, std::int64_t elements) {
    return global_elements(buffer) == elements || data_elements(buffer) == elements;
  }

  /// The first of the input buffers that hold a tensor; all of them agree.
  Expected<const Buffer*> input_of(const ReferenceNode& node, std::string_view whose) const {
    const std::string what = (node.name.empty() ? std::string{"input"} : node.name) + std::string{whose};
    const std::int64_t elements = element_count(node.extents);
    const Buffer* found = nullptr;
    for (const Program& program : schedule_.programs)
      for (const Buffer& buffer : program.buffers) {
        if (buffer.role != Role::input || buffer.tensor != node.tensor) continue;
        if (!has_elements(buffer, elements)) return wrong_size(buffer, what, global_elements(buffer), elements);
        if (const Status fits = complex_as(buffer, node.complex, what); !fits) return fits.error();
        if (found && found->dtype != buffer.dtype)
          return Diagnostic{
              {}, fmt::format("input {} is {} in one buffer and {} in another", quoted(node.tensor), name_of(found->dtype), name_of(buffer.dtype))};
        if (found && found->unpadded != buffer.unpadded)
          return Diagnostic{{}, fmt::format("input {} is padded differently in two buffers", quoted(node.tensor))};
        found = &buffer;
      }
    if (!found) return Diagnostic{{}, fmt::format("no input buffer holds {}, the {}", quoted(node.tensor), what)};
    return found;
  }

  static Diagnostic wrong_size(const Buffer& buffer, std::string_view what, std::int64_t held, std::int64_t expected) {
    return {location_of(buffer.written_at),
            fmt::format("buffer {} shards a tensor of {} elements; the {} has {}", quoted(buffer.name), held, what, expected)};
  }

  static Status complex_as(const Buffer& buffer, bool complex, std::string_view what) {
    if (complex == (buffer.dtype == DType::c64)) return success();
    return Diagnostic{location_of(buffer.written_at),
                      fmt::format("buffer {} is {}; the {} is {}", quoted(buffer.name), name_of(buffer.dtype), what, complex ? "complex" : "real")};
  }

  /// Parts of the array that comes next.
  Status add_outputs(const std::string& tensor, std::int64_t elements, bool complex, std::string_view whose) {
    const auto first = static_cast<std::ptrdiff_t>(contents_.parts.size());
    const std::string what = "result" + std::string{whose};
    for (const Program& program : schedule_.programs)
      for (std::size_t b = 0; b < program.buffers.size(); ++b) {
        const Buffer& buffer = program.buffers[b];
        if (buffer.role != Role::output || buffer.tensor != tensor) continue;
        if (!has_elements(buffer, elements)) return wrong_size(buffer, what, global_elements(buffer), elements);
        if (const Status fits = complex_as(buffer, complex, what); !fits) return fits;
        const bool padded = global_elements(buffer) == elements;
        for_each_device(program, [&](DeviceId device) {
          const ShardData data = padded ? ShardData{contiguous(elements_of(buffer)), shard_layout(schedule_.mesh, buffer, device)}
                                        : data_of_shard(schedule_.mesh, buffer, device);
          std::vector<DeviceId> addends;
          if (!buffer.unreduced.empty()) {
            if (position_along(schedule_.mesh, buffer.unreduced, device) != 0) return;
            addends = members(device, buffer.unreduced);
            addends.erase(addends.begin());
          }
          contents_.parts.push_back(
              {device, BufferId{b}, carried_in(options_.filling, buffer.dtype), in_words(data.in_buffer, buffer.dtype),
               in_words(data.in_tensor, buffer.dtype), contents_.arrays.size(), std::move(addends)});
        });
      }
    if (contents_.parts.begin() + first == contents_.parts.end())
      return Diagnostic{{}, fmt::format("no output buffer holds {}, the {}", quoted(tensor), what)};
    // One program on every device holds every shard. Otherwise look.
    if (schedule_.programs.size() == 1 && size_of(schedule_.programs[0].devices) == schedule_.mesh.devices()) return success();
    std::vector<bool> held(static_cast<std::size_t>(complex ? 2 * elements : elements), false);
    for (auto part = contents_.parts.begin() + first; part != contents_.parts.end(); ++part)
      for_each_run<1>({&part->in_array}, [&](std::int64_t count, const std::array<RunCursor, 1>& at) {
        for (std::int64_t i = 0; i < count; ++i) held[static_cast<std::size_t>(at[0].offset() + i * at[0].stride())] = true;
      });
    if (const auto missing = std::find(held.begin(), held.end(), false); missing != held.end())
      return Diagnostic{{}, fmt::format("no device holds element {} of the result {}", (missing - held.begin()) / (complex ? 2 : 1), quoted(tensor))};
    return success();
  }

  // ---- Collectives ----

  Status add(const Collective& collective) {
    const Program& program = schedule_.programs[0];
    const Buffer& in = program.buffers[collective.input.buffer.index()];
    const Buffer& out = program.buffers[collective.output.buffer.index()];
    if (in.role != Role::input) return Diagnostic{{}, fmt::format("the collective's input {} is not an input buffer", quoted(in.name))};
    if (out.role == Role::scratch) return Diagnostic{{}, fmt::format("the collective's output {} is a scratch buffer", quoted(out.name))};
    Expected<Storage> storage = Storage::make(schedule_);
    if (!storage) return storage.error();

    Status result = success();
    for_each_device(program, [&](DeviceId device) {
      if (result && options_.stop.requested()) result = cancelled_work();
      if (result && position_along(schedule_.mesh, collective.axes, device) == 0) result = add_group(collective, *storage, device);
    });
    return result;
  }

  /// The devices along the axes from `first`, which is at position 0.
  [[nodiscard]] std::vector<DeviceId> members(DeviceId first, const std::vector<AxisView>& axes) const {
    std::vector<DeviceId> members{first};
    for (const AxisView& axis : axes) {
      std::vector<DeviceId> more;
      for (const DeviceId member : members)
        for (int i = 0; i < axis.size; ++i) more.push_back(schedule_.mesh.shifted(member, axis, i));
      members = std::move(more);
    }
    return members;
  }

  Status add_group(const Collective& collective, const Storage& storage, DeviceId first) {
    const std::vector<DeviceId> devices = members(first, collective.axes);
    const auto box = [&](DeviceId device, const Region& region) {
      const Access access = storage.access(device, region, false);
      Layout layout = storage.layout(access);
      layout.offset -= storage.offset(access.slot);
      return layout;
    };
    std::vector<std::vector<double>> inputs;
    std::vector<float> shard;
    for (const DeviceId device : devices) {
      if (storage.program(device) != std::optional<std::size_t>{0})
        return Diagnostic{{}, fmt::format("device {} takes part in the {} but does not run program 0", device.value, name_of(collective.kind))};
      const Buffer& buffer = schedule_.programs[0].buffers[collective.input.buffer.index()];
      shard.resize(static_cast<std::size_t>(words_in(buffer)));
      inputs_.fill_shard(buffer, device, shard.data());
      std::vector<double>& input = inputs.emplace_back();
      const Layout region = box(device, collective.input);
      for_each_run<1>({&region}, [&](std::int64_t count, const std::array<RunCursor, 1>& at) {
        for (std::int64_t i = 0; i < count; ++i)
          input.push_back(number_in(shard[static_cast<std::size_t>(at[0].offset() + i * at[0].stride())], buffer.dtype));
      });
    }
    const Collective words = on_words(collective, schedule_.programs[0]);
    Expected<CollectiveOutputs> outputs = outputs_of(words, inputs);
    if (!outputs) return outputs.error();
    for (std::size_t p = 0; p < devices.size(); ++p)
      if (outputs->array_of[p])
        contents_.parts.push_back({devices[p], collective.output.buffer,
                                   carried_in(options_.filling, schedule_.programs[0].buffers[collective.output.buffer.index()].dtype),
                                   box(devices[p], collective.output), contiguous(elements_of(words.output)),
                                   contents_.arrays.size() + *outputs->array_of[p]});
    for (std::vector<double>& array : outputs->arrays) contents_.arrays.push_back(std::move(array));
    return success();
  }

  const Schedule& schedule_;
  const NumericOptions& options_;
  InputMaker inputs_;
  ThreadPool pool_;
  Contents contents_;
  std::vector<std::vector<SourceModule::Values>> source_inputs_;  // by device
  bool source_is_exact_ = false;
};

Bytes Reference::bytes_needed(const Schedule& lowered) {
  const auto sum = [](std::int64_t a, std::int64_t b, std::int64_t c) { return saturating_add(saturating_add(a, b), c); };
  if (const auto* program = std::get_if<ReferenceProgram>(&lowered.computes)) {
    if (!check_reference(*program, lowered.mesh).empty()) return {};  // nothing of it is evaluated
    std::int64_t outputs = 0;                                         // once more, with other roundings
    for (const auto& [tensor, node] : program->outputs)
      outputs = saturating_add(outputs, saturating_multiply(element_count(program->nodes[static_cast<std::size_t>(node)].extents),
                                                            program->nodes[static_cast<std::size_t>(node)].complex ? 2 : 1));
    return Bytes{saturating_add(bytes_to_evaluate(*program, lowered.mesh).count(), saturating_multiply(outputs, sizeof(double)))};
  }
  const std::int64_t count =
      std::visit(Overloaded{
                     [](std::monostate) { return std::int64_t{0}; },
                     [](const ReferenceProgram&) { return std::int64_t{0}; },
                     [&](SourceResults) { return saturating_multiply(3, bytes_of_buffers(lowered).count() / 4); },
                     [&](const Products& products) {
                       return bytes_to_evaluate(program_of(products), lowered.mesh).count() / static_cast<std::int64_t>(sizeof(double));
                     },
                     [&](const Collective& given) {
                       const Program& program = lowered.programs[0];
                       const Collective collective = on_words(given, program);
                       std::int64_t P = 1;
                       for (const AxisView& axis : collective.axes) P *= axis.size;
                       const std::int64_t groups = (size_of(program.devices) + P - 1) / P;
                       return sum(saturating_multiply(groups, output_elements(collective, P)), saturating_multiply(P, elements_of(collective.input)),
                                  words_in(program.buffers[collective.input.buffer.index()]));
                     },
                 },
                 lowered.computes);
  return Bytes{saturating_multiply(count, sizeof(double))};
}

Expected<Reference> Reference::make(const Schedule& lowered, const NumericOptions& options) {
  Expected<std::shared_ptr<const Contents>> contents = Builder{lowered, options}.build();
  if (!contents) return contents.error();
  Reference reference;
  reference.contents_ = *std::move(contents);
  return reference;
}

}  // namespace podsim

// What a schedule should have computed.
#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "sim/base/rng.hpp"
#include "sim/engine/numeric/bf16.hpp"
#include "sim/engine/numeric/collective_reference.hpp"
#include "sim/engine/numeric/inputs.hpp"
#include "sim/engine/numeric/judged_outputs.hpp"
#include "sim/engine/numeric/kernels.hpp"
#include "sim/engine/numeric/numeric_engine.hpp"
#include "sim/engine/numeric/reference_evaluator.hpp"
#include "sim/engine/numeric/storage.hpp"
#include "sim/schedule/validate.hpp"

namespace podsim {

struct Reference::Contents {
  /// A box of a device's buffer that should equal a box of an array.
  struct Part {
    DeviceId device;
    BufferId buffer;
    DType dtype = DType::f32;
    Layout in_buffer, in_array;  // of words
    std::size_t array = 0;
    std::vector<DeviceId> addends{};  // devices whose equal boxes are added to it first
  };
  std::vector<std::vector<double>> arrays;
  std::vector<Part> parts;
  // Per array:
  std::vector<double> largest{};    // |element| of the result it belongs to, of those that are numbers
  std::vector<double> tolerance{};  // of the largest element
  std::vector<bool> exact{};        // integers must give the same bits
  std::vector<JudgedOutputs> judged{};
  std::vector<bool> is_judged{};    // per array
  Cancellation stop;
};

namespace {

constexpr double infinite = std::numeric_limits<double>::infinity();

bool uses_bf16(const Schedule& schedule) {
  for (const Program& program : schedule.programs)
    for (const Buffer& buffer : program.buffers)
      if (buffer.dtype == DType::bf16) return true;
  return false;
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
    for (const Contents::Part& part : contents_.parts)
      if (part.dtype == DType::s32) contents_.exact[part.array] = true;
  }

  /// The relative size of one rounding, and how often a partial sum is rounded.
  struct Roundings {
    double unit = 0x1p-24;
    int stores = 0;  // of a bf16 partial sum
  };

  /// See Comparison.
  void find_tolerance() {
    contents_.is_judged.assign(contents_.arrays.size(), false);
    for (const JudgedOutputs& judged : contents_.judged)
      for (const std::size_t output : judged.outputs) contents_.is_judged[output] = true;
    bool all_exact = true;  // or judged
    for (std::size_t a = 0; a < contents_.exact.size(); ++a) all_exact = all_exact && (contents_.exact[a] || contents_.is_judged[a]);
    Roundings roundings;
    if (options_.filling == Filling::uniform && uses_bf16(schedule_)) roundings = {0x1p-9, stores_of_partial_sums(schedule_, options_.stop)};
    const double least = roundings.stores > 0 ? std::ldexp(1.0 + roundings.stores, -8) : 1e-5;
    contents_.tolerance.assign(contents_.arrays.size(), least);
    for (std::size_t a = 0; a < contents_.exact.size(); ++a)
      if (contents_.exact[a]) contents_.tolerance[a] = 0;
    if (const auto* program = std::get_if<ReferenceProgram>(&schedule_.computes); program != nullptr && !all_exact) add_noise(*program, roundings);
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
    Noise noise{options_.seed, roundings.unit * std::max(1.0, static_cast<double>(1 + roundings.stores) / deepest)};
    // Of few elements, some trial has to show what may happen; of many, the largest does in each.
    std::size_t fewest = cheap;
    for (const std::vector<double>& array : contents_.arrays) fewest = std::min(fewest, array.size());
    const int trials = elements < cheap ? 6 : fewest < few ? 4 : 1;
    for (int trial = 0; trial < trials; ++trial) {
      noise.seed = counter_hash(options_.seed, stream_of("roundings"), static_cast<std::uint64_t>(trial));
      const auto disturbed = evaluate(program, schedule_.mesh, inputs_of(program), pool_, options_.stop, noise);
      if (!disturbed || options_.stop.requested()) return;
      for (std::size_t a = 0; a < contents_.arrays.size(); ++a) {
        double most = 0;
        for (std::size_t i = 0; i < contents_.arrays[a].size(); ++i)
          if (const double difference = std::abs((*disturbed)[a][i] - contents_.arrays[a][i]); !std::isnan(difference))
            most = std::max(most, difference);
        if (contents_.largest[a] > 0 && !contents_.exact[a] && !contents_.is_judged[a])
          contents_.tolerance[a] = std::max(contents_.tolerance[a], two_digits(room * most / contents_.largest[a]));
      }
    }
  }

  /// Rounded up, so that it does not depend on the order of additions in a product.
  static double two_digits(double value) {
    if (!(value > 0) || !std::isfinite(value)) return value;
    const double unit = std::pow(10, std::floor(std::log10(value)) - 1);
    return std::stod(fmt::format("{:.1e}", std::ceil(value / unit) * unit));
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
    Expected<std::vector<std::vector<double>>> values = evaluate(with_operands, schedule_.mesh, inputs_of(program), pool_, options_.stop);
    if (!values) return values.error();
    std::size_t next = program.outputs.size();
    for (JudgedOutputs& judged : contents_.judged)
      for (std::size_t i = 0; i < judged.operands.size(); ++i) judged.arrays.push_back(std::move((*values)[next++]));
    values->resize(program.outputs.size());
    contents_.arrays = *std::move(values);
    return success();
  }

  /// Arrays of input nodes whose buffers exist.
  ReferenceInputs inputs_of(const ReferenceProgram&) {
    return [this](const ReferenceNode& node) {
      const Buffer& buffer = **input_of(node, "");
      return inputs_.global_tensor(buffer, element_count(node.extents) == global_elements(buffer), pool_);
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
};

/// The arrays of judged outputs, put together from what devices hold of them.
struct Reference::Whole {
  Whole(const std::vector<std::vector<double>>& of, const std::vector<bool>& judged) : arrays(of.size()) {
    for (std::size_t a = 0; a < of.size(); ++a)
      if (judged[a]) arrays[a].assign(of[a].size(), std::numeric_limits<double>::quiet_NaN());
  }

  void put(const Contents::Part& part, std::span<const float> values) {
    std::vector<double>& array = arrays[part.array];
    for_each_run<2>({&part.in_buffer, &part.in_array}, [&](std::int64_t count, const std::array<RunCursor, 2>& at) {
      for (std::int64_t i = 0; i < count; ++i) {
        const double value = number_in(values[static_cast<std::size_t>(at[0].offset() + i * at[0].stride())], part.dtype);
        double& held = array[static_cast<std::size_t>(at[1].offset() + i * at[1].stride())];
        copies_agree &= std::isnan(held) || held == value;
        held = value;
      }
    });
  }

  std::vector<std::vector<double>> arrays;
  bool copies_agree = true;
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

double Reference::widest_tolerance() const {
  const std::vector<double>& each = contents_->tolerance;
  return each.empty() ? 0 : *std::max_element(each.begin(), each.end());
}

Comparison Reference::compare(const Tensors& tensors) const {
  return compare([&](DeviceId device, BufferId buffer) -> std::span<const float> { return tensors.values[device.index()][buffer.index()]; });
}

Comparison Reference::compare(const BufferReader& read) const {
  Comparison result;
  result.bit_equal = result.agrees = true;
  const Contents& contents = *contents_;
  result.exact = std::all_of(contents.exact.begin(), contents.exact.end(), [](bool exact) { return exact; });
  double worst = -1;  // the error in units of the tolerance
  for (std::size_t a = 0; a < contents.arrays.size(); ++a) result.tolerance = std::max(result.tolerance, contents.tolerance[a]);
  Whole whole{contents.arrays, contents.is_judged};
  for (const Contents::Part& part : contents.parts) {
    if (contents.stop.requested()) break;
    const std::span<const float> values = read(part.device, part.buffer);
    if (contents.is_judged[part.array]) {
      whole.put(part, values);
      continue;
    }
    const auto sum_at = [&](std::size_t index) {
      double sum = number_in(values[index], part.dtype);
      for (const DeviceId other : part.addends) sum += number_in(read(other, part.buffer)[index], part.dtype);
      return part.dtype == DType::s32 ? sum : static_cast<double>(static_cast<float>(sum));
    };
    const std::vector<double>& array = contents.arrays[part.array];
    const double largest = contents.largest[part.array], tolerance = contents.tolerance[part.array];
    const bool exact = contents.exact[part.array];
    for_each_run<2>({&part.in_buffer, &part.in_array}, [&](std::int64_t count, const std::array<RunCursor, 2>& at) {
      for (std::int64_t i = 0; i < count; ++i) {
        const std::int64_t index = at[0].offset() + i * at[0].stride();
        const double found = sum_at(static_cast<std::size_t>(index));
        const double expected = array[static_cast<std::size_t>(at[1].offset() + i * at[1].stride())];
        const auto rounded = static_cast<float>(expected);
        const bool same_bits = part.dtype == DType::s32 ? found == expected
                                                        : found == static_cast<double>(part.dtype == DType::bf16 ? round_to_bf16(rounded) : rounded);
        result.bit_equal &= same_bits;
        result.agrees &= same_bits || !exact;
        if (std::isnan(expected) ? std::isnan(found) : found == expected) continue;
        double difference = std::abs(found - expected);
        if (!std::isfinite(difference)) difference = infinite;  // a NaN compares with nothing: it must not slip through
        result.max_abs_error = std::max(result.max_abs_error, difference);
        const double relative = largest > 0 ? difference / largest : infinite;
        result.agrees &= exact || relative <= tolerance;
        if (const double part_of_it = tolerance > 0 ? relative / tolerance : relative; part_of_it > worst) {
          worst = part_of_it;
          result.max_rel_error = relative;
          result.tolerance = tolerance;
          result.worst = Comparison::Element{part.device, part.buffer, index, found, expected};
        }
      }
    });
  }
  if (contents.stop.requested()) return result;
  for (const JudgedOutputs& judged : contents.judged) {
    std::vector<std::vector<double>> found;
    for (const std::size_t output : judged.outputs) found.push_back(std::move(whole.arrays[output]));
    const Residual residual = residual_of(judged, found);
    const bool holds = residual.why.empty() && residual.found <= residual.allowed && whole.copies_agree;
    result.bit_equal = false;
    result.agrees &= holds;
    result.max_abs_error = std::max(result.max_abs_error, residual.largest);
    if (!holds && result.why.empty())
      result.why = whole.copies_agree ? describe(judged, residual) : "devices hold different values of the same elements";
    if (const double part_of_it = residual.found / residual.allowed; part_of_it > worst) {
      worst = part_of_it;
      result.max_rel_error = residual.found;
      result.is_residual = true;
      result.tolerance = residual.allowed;
      result.worst.reset();
    }
  }
  return result;
}

}  // namespace podsim

// What a schedule should have computed.
#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "sim/engine/numeric/bf16.hpp"
#include "sim/engine/numeric/collective_reference.hpp"
#include "sim/engine/numeric/inputs.hpp"
#include "sim/engine/numeric/kernels.hpp"
#include "sim/engine/numeric/numeric_engine.hpp"
#include "sim/engine/numeric/storage.hpp"
#include "sim/schedule/validate.hpp"

namespace podsim {

struct Reference::Contents {
  /// A box of a device's buffer that should equal a box of an array.
  struct Part {
    DeviceId device;
    BufferId buffer;
    DType dtype = DType::f32;
    Layout in_buffer, in_array;
    std::size_t array = 0;
  };
  std::vector<std::vector<double>> arrays;
  std::vector<Part> parts;
  std::vector<double> largest;  // per array, |element| of the result it belongs to
  double tolerance = 0;
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
                                        [&](const Products& products) {
                                          Status added = success();
                                          for (const Product& product : products)
                                            if (added) added = add(product);
                                          return added;
                                        },
                                        [&](const Collective& collective) { return add(collective); },
                                    },
                                    schedule_.computes);
    if (!built) return built.error();
    if (options_.stop.requested()) return cancelled_work();
    find_largest();
    if (options_.filling == Filling::uniform)
      contents_.tolerance = uses_bf16(schedule_) ? std::ldexp(1.0 + stores_of_partial_sums(schedule_, options_.stop), -8) : 1e-5;
    contents_.stop = options_.stop;
    if (options_.stop.requested()) return cancelled_work();
    return std::make_shared<const Contents>(std::move(contents_));
  }

 private:
  /// Every product is a result of its own, a collective is one on all devices.
  void find_largest() {
    for (const std::vector<double>& array : contents_.arrays) {
      double& largest = contents_.largest.emplace_back(0);
      for (const double value : array) largest = std::max(largest, std::abs(value));
    }
    if (!contents_.largest.empty() && std::holds_alternative<Collective>(schedule_.computes))
      std::fill(contents_.largest.begin(), contents_.largest.end(), *std::max_element(contents_.largest.begin(), contents_.largest.end()));
  }

  // ---- Products ----

  Status add(const Product& product) {
    const std::int64_t left = saturating_multiply(product.m, product.k), right = saturating_multiply(product.k, product.n),
                       out = saturating_multiply(product.m, product.n);
    const Expected<DType> left_type = input_type(product.left, left, "left operand");
    if (!left_type) return left_type.error();
    const Expected<DType> right_type = input_type(product.right, right, "right operand");
    if (!right_type) return right_type.error();
    if (Status held = add_outputs(product, out); !held) return held;

    const auto x = inputs_.global_tensor(product.left, left, *left_type, pool_);
    const auto w = inputs_.global_tensor(product.right, right, *right_type, pool_);
    std::vector<double> y(static_cast<std::size_t>(out));
    use_one_blas_thread();
    const std::int64_t calls = (product.m - 1) / rows_per_call(product.n, product.k) + 1;
    const std::int64_t bands = std::max(calls, std::min(static_cast<std::int64_t>(pool_.threads()), product.m));
    pool_.for_each(static_cast<std::size_t>(bands), [&](std::size_t b, std::size_t) {
      if (options_.stop.requested()) return;
      const auto band = static_cast<std::int64_t>(b);
      multiply_rows(product, x.data(), w.data(), y.data(), product.m * band / bands, product.m * (band + 1) / bands);
    });
    contents_.arrays.push_back(std::move(y));
    return success();
  }

  /// Of an operand; all input buffers that hold it agree.
  Expected<DType> input_type(std::string_view tensor, std::int64_t elements, std::string_view what) const {
    const Buffer* found = nullptr;
    for (const Program& program : schedule_.programs)
      for (const Buffer& buffer : program.buffers) {
        if (buffer.role != Role::input || buffer.tensor != tensor) continue;
        if (const std::int64_t held = global_elements(buffer); held != elements) return wrong_size(buffer, what, held, elements);
        if (found && found->dtype != buffer.dtype)
          return Diagnostic{
              {}, fmt::format("input {} is {} in one buffer and {} in another", quoted(tensor), name_of(found->dtype), name_of(buffer.dtype))};
        found = &buffer;
      }
    if (!found) return Diagnostic{{}, fmt::format("no input buffer holds {}, the {} of the product", quoted(tensor), what)};
    return found->dtype;
  }

  static Diagnostic wrong_size(const Buffer& buffer, std::string_view what, std::int64_t held, std::int64_t expected) {
    return {location_of(buffer.written_at), fmt::format("buffer {} shards a tensor of {} elements; the {} of the product has {}", quoted(buffer.name), held, what, expected)};
  }

  Status add_outputs(const Product& product, std::int64_t elements) {
    const auto first = static_cast<std::ptrdiff_t>(contents_.parts.size());
    for (const Program& program : schedule_.programs)
      for (std::size_t b = 0; b < program.buffers.size(); ++b) {
        const Buffer& buffer = program.buffers[b];
        if (buffer.role != Role::output || buffer.tensor != product.out) continue;
        if (const std::int64_t held = global_elements(buffer); held != elements) return wrong_size(buffer, "result", held, elements);
        for_each_device(program, [&](DeviceId device) {
          contents_.parts.push_back({device, BufferId{b}, carried_in(options_.filling, buffer.dtype), contiguous(elements_of(buffer)), shard_layout(schedule_.mesh, buffer, device),
                                     contents_.arrays.size()});
        });
      }
    if (contents_.parts.begin() + first == contents_.parts.end())
      return Diagnostic{{}, fmt::format("no output buffer holds {}, the result of the product", quoted(product.out))};
    // One program on every device holds every shard. Otherwise look.
    if (schedule_.programs.size() == 1 && size_of(schedule_.programs[0].devices) == schedule_.mesh.devices()) return success();
    std::vector<bool> held(static_cast<std::size_t>(elements), false);
    for (auto part = contents_.parts.begin() + first; part != contents_.parts.end(); ++part)
      for_each_run<1>({&part->in_array}, [&](std::int64_t count, const std::array<RunCursor, 1>& at) {
        for (std::int64_t i = 0; i < count; ++i) held[static_cast<std::size_t>(at[0].offset() + i * at[0].stride())] = true;
      });
    if (const auto missing = std::find(held.begin(), held.end(), false); missing != held.end())
      return Diagnostic{{}, fmt::format("no device holds element {} of the result {}", missing - held.begin(), quoted(product.out))};
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
      shard.resize(static_cast<std::size_t>(elements_of(buffer)));
      inputs_.fill_shard(buffer, device, shard.data());
      std::vector<double>& input = inputs.emplace_back();
      const Layout region = box(device, collective.input);
      for_each_run<1>({&region}, [&](std::int64_t count, const std::array<RunCursor, 1>& at) {
        for (std::int64_t i = 0; i < count; ++i)
          input.push_back(static_cast<double>(shard[static_cast<std::size_t>(at[0].offset() + i * at[0].stride())]));
      });
    }
    Expected<CollectiveOutputs> outputs = outputs_of(collective, inputs);
    if (!outputs) return outputs.error();
    for (std::size_t p = 0; p < devices.size(); ++p)
      if (outputs->array_of[p])
        contents_.parts.push_back({devices[p], collective.output.buffer,
                                   carried_in(options_.filling, schedule_.programs[0].buffers[collective.output.buffer.index()].dtype),
                                   box(devices[p], collective.output), contiguous(elements_of(collective.output)),
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

Bytes Reference::bytes_needed(const Schedule& lowered) {
  const auto sum = [](std::int64_t a, std::int64_t b, std::int64_t c) { return saturating_add(saturating_add(a, b), c); };
  const std::int64_t count =
      std::visit(Overloaded{
                     [](std::monostate) { return std::int64_t{0}; },
                     [&](const Products& products) {
                       std::int64_t count_of_all = 0;
                       for (const Product& product : products)
                         count_of_all = sum(saturating_add(count_of_all, saturating_multiply(product.m, product.k)),
                                            saturating_multiply(product.k, product.n), saturating_multiply(product.m, product.n));
                       return count_of_all;
                     },
                     [&](const Collective& collective) {
                       std::int64_t P = 1;
                       for (const AxisView& axis : collective.axes) P *= axis.size;
                       const Program& program = lowered.programs[0];
                       const std::int64_t groups = (size_of(program.devices) + P - 1) / P;
                       return sum(saturating_multiply(groups, output_elements(collective, P)), saturating_multiply(P, elements_of(collective.input)),
                                  elements_of(program.buffers[collective.input.buffer.index()]));
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

Comparison Reference::compare(const Tensors& tensors) const {
  return compare([&](DeviceId device, BufferId buffer) -> std::span<const float> { return tensors.values[device.index()][buffer.index()]; });
}

Comparison Reference::compare(const BufferReader& read) const {
  Comparison result;
  result.bit_equal = true;
  result.tolerance = contents_->tolerance;
  for (const Contents::Part& part : contents_->parts) {
    if (contents_->stop.requested()) break;
    const std::span<const float> values = read(part.device, part.buffer);
    const std::vector<double>& array = contents_->arrays[part.array];
    const double largest = contents_->largest[part.array];
    for_each_run<2>({&part.in_buffer, &part.in_array}, [&](std::int64_t count, const std::array<RunCursor, 2>& at) {
      for (std::int64_t i = 0; i < count; ++i) {
        const std::int64_t index = at[0].offset() + i * at[0].stride();
        const float found = values[static_cast<std::size_t>(index)];
        const double expected = array[static_cast<std::size_t>(at[1].offset() + i * at[1].stride())];
        const auto rounded = static_cast<float>(expected);
        result.bit_equal &= found == (part.dtype == DType::bf16 ? round_to_bf16(rounded) : rounded);
        double difference = std::abs(static_cast<double>(found) - expected);
        if (!std::isfinite(difference)) difference = infinite;  // a NaN compares with nothing: it must not slip through
        if (difference == 0) continue;
        result.max_abs_error = std::max(result.max_abs_error, difference);
        if (const double relative = largest > 0 ? difference / largest : infinite; relative > result.max_rel_error) {
          result.max_rel_error = relative;
          result.worst = Comparison::Element{part.device, part.buffer, index, static_cast<double>(found), expected};
        }
      }
    });
  }
  return result;
}

}  // namespace podsim

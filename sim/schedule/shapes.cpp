// check_shapes: what can be told about a schedule without writing it out per device.
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>

#include "sim/schedule/program_builder.hpp"
#include "sim/schedule/text.hpp"
#include "sim/schedule/validate.hpp"

namespace podsim {

namespace {

// All indices that a schedule computes stay below this, so that no engine has to think of overflow.
constexpr std::int64_t largest_number = std::int64_t{1} << 56;

class ShapeChecker {
 public:
  explicit ShapeChecker(const Schedule& schedule) : schedule_{schedule} {}

  std::vector<Diagnostic> check() {
    place_ = file_of(schedule_);
    check_device_sets();
    for (const Function& function : schedule_.functions) check_function(function);
    in_function_ = false;
    for (std::size_t p = 0; p < schedule_.programs.size(); ++p) {
      where_ = schedule_.programs.size() == 1 ? "" : fmt::format("program {} ", p);
      check_program(schedule_.programs[p]);
    }
    if (problems_.empty()) check_computes();
    return std::move(problems_);
  }

 private:
  template <class... Args>
  void problem(fmt::format_string<Args...> format, Args&&... args) {
    problems_.push_back({location_of(place_), where_ + fmt::format(format, std::forward<Args>(args)...)});
  }
  std::string task() const { return "task " + task_name(*program_, task_); }

  void check_program(const Program& program) {
    program_ = &program;
    const std::size_t before = problems_.size();
    for (const Buffer& buffer : program.buffers) check_buffer(buffer);
    if (problems_.size() > before) return;  // regions are judged by their buffers
    has_host_buffers_ = std::any_of(program.buffers.begin(), program.buffers.end(), [](const Buffer& buffer) { return buffer.on_host; });
    for (std::size_t t = 0; t < program.tasks.size(); ++t) check_task(TaskId{t});
  }

  void check_function(const Function& function) {
    in_function_ = true;
    where_ = fmt::format("function {}: ", quoted(function.name));
    if (function.parameters < 0 || static_cast<std::size_t>(function.parameters) > function.body.buffers.size())
      problem("{} parameters, but {} buffers", function.parameters, function.body.buffers.size());
    if (!function.body.devices.intervals.empty()) problem("a function has no devices of its own");
    for (const Buffer& buffer : function.body.buffers)
      if (buffer.role != Role::scratch) problem("buffer {}: expected scratch: a function reads and writes what its caller gives it", quoted(buffer.name));
    check_program(function.body);
  }

  void check_device_sets() {
    std::vector<bool> taken(static_cast<std::size_t>(schedule_.mesh.devices()), false);
    for (std::size_t p = 0; p < schedule_.programs.size(); ++p) {
      for (const DeviceSet::Interval& interval : schedule_.programs[p].devices.intervals) {
        if (interval.first < 0 || interval.first >= interval.last || interval.last > schedule_.mesh.devices()) {
          problem("program {}: devices {}..{} are not a range of the mesh's {} devices", p, interval.first, interval.last, schedule_.mesh.devices());
          continue;
        }
        for (int d = interval.first; d < interval.last; ++d) {
          if (taken[static_cast<std::size_t>(d)]) {
            problem("program {}: device {} already runs another program", p, d);
            break;
          }
          taken[static_cast<std::size_t>(d)] = true;
        }
      }
    }
  }

  bool check_view(const AxisView& view, std::string_view what) {
    const auto& axes = schedule_.mesh.axes();
    const bool ok = view.axis >= 0 && view.axis < static_cast<int>(axes.size()) && view.stride >= 1 && view.size >= 1 &&
                    static_cast<std::int64_t>(view.stride) * view.size <= axes[static_cast<std::size_t>(view.axis)].size &&
                    axes[static_cast<std::size_t>(view.axis)].size % (static_cast<std::int64_t>(view.stride) * view.size) == 0;
    if (!ok)
      problem("{}: {}: axis {} with stride {} and size {} is no view of the mesh {}", task(), what, view.axis, view.stride, view.size,
              to_text(schedule_.mesh));
    return ok;
  }

  void check_buffer(const Buffer& buffer) {
    place_ = buffer.written_at;
    std::int64_t count = 1;
    for (const std::int64_t extent : buffer.extents) {
      if (extent < 1 || extent > largest_number / 8 / count) {
        double product = 1;
        for (const std::int64_t factor : buffer.extents) product *= static_cast<double>(factor);
        problem("buffer {}: extents must be positive and their product below 2^53, found {}{}", quoted(buffer.name), fmt::join(buffer.extents, "x"),
                extent > 0 && buffer.extents.size() > 1 ? fmt::format(" = {:.4g}", product) : "");
        return;
      }
      count *= extent;
    }
    if (buffer.role == Role::scratch) {
      if (!buffer.tensor.empty() || !buffer.sharding.empty() || !buffer.unpadded.empty() || !buffer.grouped.empty() || !buffer.unreduced.empty())
        problem("buffer {}: scratch has no tensor and no sharding", quoted(buffer.name));
      return;
    }
    if (buffer.tensor.empty()) problem("buffer {}: an input or output needs the name of its tensor", quoted(buffer.name));
    if (buffer.sharding.size() != buffer.extents.size())
      problem("buffer {}: expected a sharding for each of {} dimensions, found {}", quoted(buffer.name), buffer.extents.size(),
              buffer.sharding.size());
    if (!buffer.unreduced.empty() && buffer.role != Role::output) problem("buffer {}: only outputs may be partial sums", quoted(buffer.name));
    std::set<AxisView> used;
    std::vector<std::vector<AxisView>> all = buffer.sharding;
    all.push_back(buffer.unreduced);
    for (const auto& views : all)
      for (const AxisView& view : views) {
        if (view.axis < 0 || view.axis >= static_cast<int>(schedule_.mesh.axes().size()) || view.stride < 1 || view.size < 1 ||
            schedule_.mesh.axes()[static_cast<std::size_t>(view.axis)].size % (static_cast<std::int64_t>(view.stride) * view.size) != 0)
          problem("buffer {}: the sharding names axis {}, which is no view of the mesh {}", quoted(buffer.name), view.axis, to_text(schedule_.mesh));
        else if (!used.insert(view).second)
          problem("buffer {}: the sharding names mesh axis {} twice", quoted(buffer.name), schedule_.mesh.name(view));
      }
    check_padding(buffer);
  }

  void check_padding(const Buffer& buffer) {
    if (buffer.unpadded.empty() && buffer.grouped.empty()) return;
    const std::size_t rank = buffer.extents.size();
    bool fits = buffer.sharding.size() == rank && buffer.unpadded.size() == (buffer.grouped.empty() ? rank : buffer.grouped.size());
    std::size_t first = 0;
    for (std::size_t t = 0; fits && t < buffer.unpadded.size(); ++t) {
      const std::size_t dims = buffer.grouped.empty() ? 1 : static_cast<std::size_t>(std::max(buffer.grouped[t], 0));
      fits = dims >= 1 && first + dims <= rank;
      std::int64_t extent = 1, block = 1;
      for (std::size_t i = first; fits && i < first + dims; ++i) {
        if (__builtin_mul_overflow(extent, buffer.extents[i], &extent)) extent = std::numeric_limits<std::int64_t>::max();
        for (const AxisView& view : buffer.sharding[i])
          if (__builtin_mul_overflow(extent, view.size, &extent)) extent = std::numeric_limits<std::int64_t>::max();
        if (i > first + 1) block *= buffer.extents[i];
        if (dims > 1) fits = (i == first + 1) ? buffer.extents[i] == 1 : buffer.sharding[i].empty();
      }
      fits = fits && 1 <= buffer.unpadded[t] && buffer.unpadded[t] <= extent && buffer.unpadded[t] % block == 0;
      first += dims;
    }
    if (!fits || first != rank)
      problem("buffer {}: the extents without padding, {}, are not within those of its tensor", quoted(buffer.name), fmt::join(buffer.unpadded, "x"));
  }

  bool check_affine(const Affine& affine, std::string_view what) {
    for (const AxisTerm& term : affine.terms) {
      if (!check_view(term.axis, what)) return false;
      if (term.add < -largest_number || term.add > largest_number) {
        problem("{}: {}: a coordinate moved by {}", task(), what, term.add);
        return false;
      }
    }
    double low = static_cast<double>(affine.constant), high = low;  // far from the limit precision does not matter, and nothing overflows
    bool small = true;  // a coefficient counts even where the axis has one device: it is still printed and negated
    for (const AxisTerm& term : affine.terms) {
      small = small && -largest_number <= term.coefficient && term.coefficient <= largest_number;
      const double reach = static_cast<double>(term.coefficient) * (term.axis.size - 1);
      (reach < 0 ? low : high) += reach;
    }
    if (!small || low < -static_cast<double>(largest_number) || high > static_cast<double>(largest_number) || affine.modulus < 0 ||
        affine.modulus > largest_number) {
      problem("{}: {}: an index beyond 2^56 or a negative modulus", task(), what);
      return false;
    }
    return true;
  }

  bool check_region(const Region& region, std::string_view what) {
    if (region.buffer.value < 0 || region.buffer.index() >= program_->buffers.size()) {
      problem("{}: {}: there is no buffer {}", task(), what, region.buffer.value);
      return false;
    }
    const Buffer& buffer = program_->buffers[region.buffer.index()];
    if (region.dims.size() != buffer.extents.size()) {
      problem("{}: {}: expected {} ranges for buffer {}, found {}", task(), what, buffer.extents.size(), quoted(buffer.name), region.dims.size());
      return false;
    }
    for (std::size_t i = 0; i < region.dims.size(); ++i) {
      const Range& range = region.dims[i];
      if (!check_affine(range.index, what)) return false;
      if (range.length < 1 || range.length > buffer.extents[i]) {
        problem("{}: {}: dimension {} of buffer {} has {} elements, the range takes {}", task(), what, i, quoted(buffer.name), buffer.extents[i],
                range.length);
        return false;
      }
      if (range.stride < -largest_number || range.stride > largest_number || range.offset < -largest_number || range.offset > largest_number ||
          std::abs(static_cast<double>(range.stride)) * index_reach(range.index) > static_cast<double>(largest_number)) {
        problem("{}: {}: stride {} and offset {} lead beyond 2^56", task(), what, range.stride, range.offset);
        return false;
      }
    }
    return true;
  }

  static double index_reach(const Affine& affine) {
    if (affine.modulus > 0) return static_cast<double>(affine.modulus);
    double reach = std::abs(static_cast<double>(affine.constant));
    for (const AxisTerm& term : affine.terms) reach += std::abs(static_cast<double>(term.coefficient)) * (term.axis.size - 1);
    return reach;
  }

  DType dtype(const Region& region) const { return program_->buffers[region.buffer.index()].dtype; }

  void check(const Matmul& matmul) {
    if (!check_region(matmul.left, "left") || !check_region(matmul.right, "right") || !check_region(matmul.out, "out")) return;
    const auto group = [&](const Region& region, int split, bool second, std::string_view what) -> std::int64_t {
      const int rank = static_cast<int>(region.dims.size());
      if (split < 0 || split > rank) {
        problem("{}: {}: cannot split {} dimensions after {}", task(), what, rank, split);
        return 0;
      }
      std::int64_t count = 1;
      for (int i = second ? split : 0; i < (second ? rank : split); ++i) count *= region.dims[static_cast<std::size_t>(i)].length;
      return count;
    };
    const std::int64_t left_rows = group(matmul.left, matmul.left_split, matmul.transpose_left, "left");
    const std::int64_t left_contraction = group(matmul.left, matmul.left_split, !matmul.transpose_left, "left");
    const std::int64_t right_contraction = group(matmul.right, matmul.right_split, matmul.transpose_right, "right");
    const std::int64_t right_columns = group(matmul.right, matmul.right_split, !matmul.transpose_right, "right");
    const std::int64_t out_rows = group(matmul.out, matmul.out_split, false, "out");
    const std::int64_t out_columns = group(matmul.out, matmul.out_split, true, "out");
    if (left_contraction != right_contraction)
      problem("{}: the contraction is {} on the left and {} on the right", task(), left_contraction, right_contraction);
    if (left_rows != out_rows || right_columns != out_columns)
      problem("{}: the product is {}x{}, out is {}x{}", task(), left_rows, right_columns, out_rows, out_columns);
    const DType operands = dtype(matmul.left);
    if (!is_product_dtype(operands)) problem("{}: a product of {}; expected {}", task(), name_of(operands), product_dtype_names());
    if (operands != dtype(matmul.right) || !is_product_of(operands, dtype(matmul.out)))
      problem("{}: left is {}, right is {}, out is {}", task(), name_of(operands), name_of(dtype(matmul.right)), name_of(dtype(matmul.out)));
    check_passes(matmul.float32_passes);
  }

  void check_passes(int passes) {
    if (passes < 0 || passes > most_float32_passes) problem("{}: a float32 product of {} passes; expected up to {}", task(), passes, most_float32_passes);
  }

  /// Only copies between device and host touch memory of the host.
  void check_host(const Op& op) {
    const auto* local = std::get_if<Local>(&op);
    const auto on_host = [&](const Region& region) { return program_->buffers[region.buffer.index()].on_host; };
    const auto touches = [&](const Region& region, bool writes) {
      if (region.buffer.value < 0 || region.buffer.index() >= program_->buffers.size() || !on_host(region)) return;
      if (local != nullptr && local->kind == (writes ? LocalKind::to_host : LocalKind::from_host)) return;
      problem("{}: buffer {} is on the host: expected only to-host to write it and from-host to read it", task(),
              quoted(program_->buffers[region.buffer.index()].name));
    };
    if (local != nullptr) {
      for (const Region& region : local->reads) touches(region, false);
      for (const Region& region : local->writes) touches(region, true);
      return;
    }
    Op copy = op;
    for (const Region* region : regions_of(copy)) touches(*region, false);
  }

  void check(const Local& local) {
    const LocalTraits& traits = traits_of(local.kind);
    if (!traits.any_count && (static_cast<int>(local.reads.size()) != traits.reads || static_cast<int>(local.writes.size()) != traits.writes)) {
      problem("{}: {} takes {} reads and {} writes, found {} and {}", task(), traits.name, traits.reads, traits.writes, local.reads.size(),
              local.writes.size());
      return;
    }
    for (const Region& read : local.reads)
      if (!check_region(read, "read")) return;
    for (const Region& write : local.writes)
      if (!check_region(write, "write")) return;
    for (const Numbering& numbering : local.numbering)
      if (!check_affine(numbering.first, "numbering")) return;
    OperandCheck operands{*program_};
    for (const std::vector<Region>* regions : {&local.reads, &local.writes})
      for (const Region& region : *regions) operands.dtype_among(region, traits.dtypes, fmt::format("an operand of {}", traits.name));
    traits.shapes(local, operands);
    report(operands);
    if (operands.problems().empty()) check_splits(local);
  }

  /// Of regions whose rows the kind does not ask for, too.
  void check_splits(const Local& local) {
    const std::size_t regions = local.reads.size() + local.writes.size();
    for (std::size_t i = 0; i < local.splits.size(); ++i) {
      const std::size_t rank = i >= regions ? 0 : (i < local.reads.size() ? local.reads[i] : local.writes[i - local.reads.size()]).dims.size();
      if (i < regions && local.splits[i] >= 0 && static_cast<std::size_t>(local.splits[i]) <= rank) continue;
      problem("{}: split {} of region {}, of {} dimensions; expected at most one split for each of {} regions, within its dimensions", task(), local.splits[i], i, rank, regions);
      return;
    }
  }

  void report(const OperandCheck& operands) {
    for (const std::string& text : operands.problems()) problem("{}: {}", task(), text);
  }

  void check(const Shift& shift) {
    check_route_order(shift.route_order);
    if (!check_view(shift.axis, "axis") || !check_affine(shift.by, "by")) return;
    for (const AxisTerm& term : shift.by.terms)
      if (term.axis.axis == shift.axis.axis) problem("{}: the distance of a shift may depend on the other axes only", task());
    if (shift.by_dimension) check_by_dimension(shift);
    if (!check_region(shift.source, "source") || !check_region(shift.target, "target")) return;
    OperandCheck operands{*program_};
    operands.pair(shift.source, shift.target, "the source", "the target");
    report(operands);
    if (shift.in_switch == InSwitch::none) return;
    check_in_switch(shift);
    const std::optional<Origin>& origin = program_->tasks[task_.index()].origin;
    if (origin && !origin->in_switch) problem("{}: its origin does not say that a switch works on the collective (in_switch)", task());
  }

  void check_by_dimension(const Shift& shift) {
    const MeshAxis& axis = schedule_.mesh.axes()[static_cast<std::size_t>(shift.axis.axis)];
    if (axis.factors.empty() || shift.axis.size != axis.size)
      problem("{}: by dimension goes the whole of a folded axis, found {}", task(), schedule_.mesh.name(shift.axis));
    if (!shift.by.terms.empty() || shift.by.modulus != 0 || std::abs(shift.by.constant) >= axis.size)
      problem("{}: expected a constant distance nearer to 0 than {} to go by dimension", task(), axis.size);
    if (shift.in_switch != InSwitch::none) problem("{}: what a switch works on does not go by dimension", task());
  }

  /// Of P devices, a carrier has P - 2 copies of what it sends, or P - 2 addends as large as what it brings.
  void check_in_switch(const Shift& shift) {
    if (shift.combine != Combine::replace) problem("{}: what a switch adds up or copies replaces its target", task());
    if (!shift.by.terms.empty()) problem("{}: in a switch every device shifts by the same distance", task());
    if (groups_of_ != program_) count_groups();
    const std::int64_t others = shift.axis.size - 2;
    const SwitchGroup &same_source = groups_[carried(shift, true)], &same_size = groups_[carried(shift, false)];
    if (same_source.copies > 0 && same_source.copies != others * same_source.carriers)
      return problem("{}: along {} a carrier has {} copies of what it sends, found {} for {}", task(), schedule_.mesh.name(shift.axis), others,
                     same_source.copies, same_source.carriers);
    if (same_size.addends != others * (same_size.carriers - same_size.carriers_with_copies))
      problem("{}: along {} a carrier without copies has {} addends as large as what it brings, found {} for {}", task(), schedule_.mesh.name(shift.axis),
              others, same_size.addends, same_size.carriers - same_size.carriers_with_copies);
  }

  /// Shifts in a switch that have something in common.
  struct SwitchGroup {
    std::int64_t carriers = 0, carriers_with_copies = 0, copies = 0, addends = 0;
  };
  void count_groups() {
    groups_of_ = program_;
    groups_.clear();
    const auto each = [&](auto visit) {
      for (const Task& one : program_->tasks)
        if (const auto* shift = std::get_if<Shift>(&one.op); shift != nullptr && shift->in_switch != InSwitch::none) visit(*shift);
    };
    each([&](const Shift& shift) {
      SwitchGroup& same_source = groups_[carried(shift, true)];
      if (shift.in_switch == InSwitch::carrier) ++same_source.carriers;
      if (shift.in_switch == InSwitch::copy) ++same_source.copies;
    });
    each([&](const Shift& shift) {
      SwitchGroup& same_size = groups_[carried(shift, false)];
      if (shift.in_switch == InSwitch::addend) ++same_size.addends;
      if (shift.in_switch != InSwitch::carrier) return;
      ++same_size.carriers;
      if (groups_[carried(shift, true)].copies > 0) ++same_size.carriers_with_copies;
    });
  }

  /// What a carrier has in common with its copies: the axis and the source; with its addends: the axis and the number of elements.
  static std::vector<std::int64_t> carried(const Shift& shift, bool same_source) {
    std::vector<std::int64_t> key{shift.axis.axis, shift.axis.stride, shift.axis.size, elements_of(shift.source)};
    if (!same_source) return key;
    key.push_back(static_cast<std::int64_t>(shift.source.buffer.index()));
    for (const Range& range : shift.source.dims) {
      key.insert(key.end(), {range.stride, range.offset, range.length, range.index.constant, range.index.modulus, std::ssize(range.index.terms)});
      for (const AxisTerm& term : range.index.terms) key.insert(key.end(), {term.axis.axis, term.axis.stride, term.axis.size, term.coefficient, term.add});
    }
    return key;
  }

  void check_route_order(const std::vector<int>& order) {
    std::set<int> seen(order.begin(), order.end());
    if (seen.size() != order.size() || (!order.empty() && (*seen.begin() != 0 || *seen.rbegin() != static_cast<int>(order.size()) - 1)))
      problem("{}: the route order is no permutation of the physical dimensions", task());
  }

  void check_peer(const Peer& peer) {
    if (peer.size() != schedule_.mesh.axes().size())
      problem("{}: expected the peer's coordinate on each of {} mesh axes, found {}", task(), schedule_.mesh.axes().size(), peer.size());
    for (const Affine& affine : peer) check_affine(affine, "peer");
  }

  void check(const Send& send) {
    if (in_function_) problem("{}: a function has no Send: expected it in the program, behind the Call", task());
    check_route_order(send.route_order);
    check_peer(send.to);
    check_region(send.source, "source");
  }
  void check(const Recv& recv) {
    if (in_function_) problem("{}: a function has no Recv: expected it in the program, before the Call", task());
    check_peer(recv.from);
    check_region(recv.target, "target");
  }

  void check(const Collective& collective) {
    const bool input_holds = check_region(collective.input, "input");
    const bool output_holds = check_region(collective.output, "output");
    std::set<int> seen;
    std::int64_t devices = 1;
    for (const AxisView& view : collective.axes) {
      if (!check_view(view, "axes")) return;
      if (!seen.insert(view.axis).second) {
        problem("{}: mesh axis {} is named twice", task(), schedule_.mesh.name(view));
        return;
      }
      devices *= view.size;
    }
    if (!input_holds || !output_holds) return;
    if (collective.axes.empty()) problem("{}: a collective needs at least one mesh axis", task());
    if (dtype(collective.input) != dtype(collective.output))
      problem("{}: the input is {}, the output is {}", task(), name_of(dtype(collective.input)), name_of(dtype(collective.output)));
    const std::int64_t in = elements_of(collective.input), out = elements_of(collective.output);
    const bool gathers = collective.kind == CollectiveKind::all_gather, scatters = collective.kind == CollectiveKind::reduce_scatter;
    const bool fits = gathers    ? out % devices == 0 && out / devices == in
                      : scatters ? in % devices == 0 && in / devices == out
                                 : in == out;  // no overflow
    if (!fits) problem("{}: {} over {} devices: the input has {} elements, the output {}", task(), name_of(collective.kind), devices, in, out);
    if (gathers) check_blocks(collective, collective.output, collective.dim, "output", devices);
    if (scatters) check_blocks(collective, collective.input, collective.dim, "input", devices);
    if (collective.kind == CollectiveKind::all_to_all) {
      check_blocks(collective, collective.input, collective.split_dim, "input", devices);
      check_blocks(collective, collective.output, collective.dim, "output", devices);
    }
    if (collective.kind == CollectiveKind::permute)
      check_pairs(collective, devices);
    else if (!collective.pairs.empty())
      problem("{}: {} takes no pairs", task(), name_of(collective.kind));
    if (collective.root < 0 || collective.root >= devices) problem("{}: root {} is not among {} devices", task(), collective.root, devices);
  }

  void check(const Call& call) {
    const Task& entry = program_->tasks[task_.index()];
    if (in_function_) {
      problem("{}: a function does not call another", task());
      return;
    }
    if (!entry.where.empty()) problem("{}: a Call has no guard: expected another program for the devices that do not call", task());
    if (call.function < 0 || static_cast<std::size_t>(call.function) >= schedule_.functions.size()) {
      problem("{}: there is no function {}, but {} of them", task(), call.function, schedule_.functions.size());
      return;
    }
    const Function& function = schedule_.functions[static_cast<std::size_t>(call.function)];
    if (static_cast<int>(call.arguments.size()) != function.parameters) {
      problem("{}: {} takes {} buffers, found {}", task(), quoted(function.name), function.parameters, call.arguments.size());
      return;
    }
    for (std::size_t a = 0; a < call.arguments.size() && a < function.body.buffers.size(); ++a) {
      if (call.arguments[a].value < 0 || call.arguments[a].index() >= program_->buffers.size()) {
        problem("{}: there is no buffer {}", task(), call.arguments[a].value);
        continue;
      }
      const Buffer &given = program_->buffers[call.arguments[a].index()], &wanted = function.body.buffers[a];
      if (given.dtype != wanted.dtype || given.extents != wanted.extents)
        problem("{}: {} of {} is {}[{}], buffer {} is {}[{}]", task(), quoted(wanted.name), quoted(function.name), name_of(wanted.dtype),
                fmt::join(wanted.extents, ","), quoted(given.name), name_of(given.dtype), fmt::join(given.extents, ","));
      if (given.on_host != wanted.on_host)
        problem("{}: {} of {} is on the {}, buffer {} on the {}", task(), quoted(wanted.name), quoted(function.name),
                wanted.on_host ? "host" : "device", quoted(given.name), given.on_host ? "host" : "device");
    }
  }

  void check_blocks(const Collective& collective, const Region& region, int dim, std::string_view what, std::int64_t devices) {
    if (dim < 0 || dim >= static_cast<int>(region.dims.size()) || region.dims[static_cast<std::size_t>(dim)].length % devices != 0)
      problem("{}: {}: dimension {} of the {} does not divide into {} blocks", task(), name_of(collective.kind), dim, what, devices);
  }

  void check_pairs(const Collective& collective, std::int64_t devices) {
    std::set<std::int64_t> senders, receivers;
    for (const Collective::Pair& pair : collective.pairs) {
      if (pair.from < 0 || pair.from >= devices || pair.to < 0 || pair.to >= devices)
        problem("{}: the pair {}>{} is not among {} devices", task(), pair.from, pair.to, devices);
      if (!senders.insert(pair.from).second) problem("{}: device {} sends twice", task(), pair.from);
      if (!receivers.insert(pair.to).second) problem("{}: device {} receives twice", task(), pair.to);
    }
  }

  /// The tasks of a Collective agree on it.
  void check_origin(const std::optional<Origin>& origin) {
    if (!origin) return;
    if (origins_of_ != program_) origins_.clear(), origins_of_ = program_;
    const Origin& first = origins_.try_emplace(origin->collective, *origin).first->second;
    if (first.kind != origin->kind || first.input_bytes != origin->input_bytes || first.own_block != origin->own_block || first.in_switch != origin->in_switch)
      problem("{}: its origin differs from that of an earlier task of collective {}", task(), origin->collective);
  }

  void check_task(TaskId id) {
    task_ = id;
    place_ = program_->tasks[id.index()].written_at;
    check_origin(program_->tasks[id.index()].origin);
    const Task& entry = program_->tasks[id.index()];
    std::visit([&](const auto& op) { check(op); }, entry.op);
    if (has_host_buffers_) check_host(entry.op);
    for (const Condition& condition : entry.where) check_affine(condition.value, "where");
    if (entry.origin) check_view(entry.origin->axis, "origin");
    if (is_launch(entry.op) && !entry.origin) problem("{}: a launch starts a Collective, so it needs its origin", task());
    if (const auto* collective = std::get_if<Collective>(&entry.op)) check_group_guard(*collective, entry.where);
    const auto halves = [](const Op& op) {
      return std::holds_alternative<Shift>(op) ? 3 : std::holds_alternative<Send>(op) ? 1 : std::holds_alternative<Recv>(op) ? 2 : 0;
    };
    for (const Edge& edge : entry.after) {
      if (edge.task.value < 0 || edge.task >= id) {
        problem("{}: an edge leads to task {}; expected an earlier task of the same program", task(), edge.task.value);
        continue;
      }
      const int done = halves(program_->tasks[edge.task.index()].op), gates = halves(entry.op);
      if (edge.done != Half::both && !(done & (edge.done == Half::send ? 1 : 2)))
        problem("{}: an edge waits for a half of task {}, which does not have it", task(), task_name(*program_, edge.task));
      if (edge.gates != Half::both && !(gates & (edge.gates == Half::send ? 1 : 2)))
        problem("{}: an edge gates a half that the task does not have", task());
    }
  }

  /// All devices of a group take part, or none.
  void check_group_guard(const Collective& collective, const Guard& where) {
    for (const Condition& condition : where)
      for (const AxisTerm& term : condition.value.terms)
        if (std::any_of(collective.axes.begin(), collective.axes.end(), [&](const AxisView& view) { return view.axis == term.axis.axis; }))
          problem("{}: the guard of a Collective mentions its own mesh axis {}; expected one that holds for all devices along it or for none", task(),
                  schedule_.mesh.name(term.axis));
  }

  void check_computes() {
    where_ = "";
    place_ = file_of(schedule_);
    if (const auto* products = std::get_if<Products>(&schedule_.computes))
      for (const Product& product : *products)
        if (product.m < 1 || product.n < 1 || product.k < 1)
          problem("computes: the extents of a product must be positive, found m={}, n={}, k={}", product.m, product.n, product.k);
    if (const auto* reference = std::get_if<ReferenceProgram>(&schedule_.computes))
      for (const std::string& text : check_reference(*reference, schedule_.mesh)) problem("computes: {}", text);
    if (std::holds_alternative<SourceResults>(schedule_.computes) && (schedule_.source == nullptr || schedule_.programs.size() != 1))
      problem("computes: the results of a source need a source and one program");
    const auto* collective = std::get_if<Collective>(&schedule_.computes);
    if (!collective) return;
    if (schedule_.programs.empty()) {
      problem("computes: a collective needs a program");
      return;
    }
    // The same rules as for the op, in a program of its own.
    Schedule claim{schedule_.name,
                   schedule_.mesh,
                   {{schedule_.programs[0].devices, schedule_.programs[0].buffers, {{"computes", *collective, {}, {}, {}, place_}}}},
                   {}};
    for (Diagnostic& diagnostic : check_shapes(claim)) problems_.push_back({diagnostic.where, "computes: " + diagnostic.message});
  }

  const Schedule& schedule_;
  const Program* program_ = nullptr;
  bool in_function_ = false, has_host_buffers_ = false;
  const Program* origins_of_ = nullptr;
  std::map<int, Origin> origins_;  // of one program, by collective: the first
  const Program* groups_of_ = nullptr;
  std::map<std::vector<std::int64_t>, SwitchGroup> groups_;  // of one program
  TaskId task_;
  WrittenAt place_;  // of what is checked
  std::string where_;
  std::vector<Diagnostic> problems_;
};

}  // namespace

std::vector<Diagnostic> check_shapes(const Schedule& schedule) { return ShapeChecker{schedule}.check(); }

}  // namespace podsim

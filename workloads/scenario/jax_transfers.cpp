#include "workloads/scenario/jax_transfers.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

#include "sim/base/invariant.hpp"
#include "workloads/sharded/plan.hpp"

namespace podsim {

namespace {

std::vector<std::string> names_of(const Mesh& mesh, const std::vector<int>& axes) {
  std::vector<std::string> names;
  for (const int axis : axes) names.push_back(mesh.axes()[static_cast<std::size_t>(axis)].name);
  return names;
}

/// Adds a transfer to those of its tensor.
void add(std::vector<JaxTransfer>& transfers, JaxTransfer one) {
  for (JaxTransfer& known : transfers)
    if (std::tie(known.kind, known.tensor, known.axes) == std::tie(one.kind, one.tensor, one.axes)) {
      known.times += one.times;
      known.received += one.received;
      return;
    }
  transfers.push_back(std::move(one));
}

Bytes sum_of(const std::vector<JaxTransfer>& transfers) {
  Bytes sum;
  for (const JaxTransfer& transfer : transfers) sum += transfer.received;
  return sum;
}

// ---- What the plan does ----

/// "dX: gather W s3": in the section dX, of W. Labels name the tensor last.
struct Labelled {
  std::string section, tensor;
};
Labelled read_label(std::string label) {
  Labelled result;
  if (const std::size_t colon = label.find(": "); colon != std::string::npos) result.section = label.substr(0, colon), label.erase(0, colon + 2);
  std::size_t space = label.rfind(' ');
  if (space != std::string::npos && label.size() > space + 2 && label[space + 1] == 's' &&
      label.find_first_not_of("0123456789", space + 2) == std::string::npos)
    label.erase(space), space = label.rfind(' ');
  result.tensor = space == std::string::npos ? label : label.substr(space + 1);
  return result;
}

class PlanTransfers {
 public:
  PlanTransfers(const Schedule& schedule, const Mesh& mesh, const AxesOfView& axes_of)
      : schedule_{schedule}, program_{schedule.programs.front()}, mesh_{mesh}, axes_of_{axes_of} {}

  /// By section; `tensor` where labels do not name it.
  std::map<std::string, std::vector<JaxTransfer>> find(const std::string& tensor) {
    std::map<std::string, std::vector<Found>> found;
    for (const Task& task : program_.tasks) {
      const auto* collective = std::get_if<Collective>(&task.op);
      const auto* shift = std::get_if<Shift>(&task.op);
      PODSIM_ASSERT(!std::holds_alternative<Send>(task.op) && "parts are written with collectives and shifts");
      if (collective == nullptr && shift == nullptr) continue;
      const Labelled label = read_label(task.label);
      const std::vector<AxisView> axes = collective != nullptr ? collective->axes : std::vector<AxisView>{shift->axis};
      if (std::all_of(axes.begin(), axes.end(), [](const AxisView& axis) { return axis.size == 1; })) continue;
      const double received = part_of_devices(task.where) *
                              (collective != nullptr ? received_of(*collective) : static_cast<double>(bytes_of(program_, shift->target).count()));
      add(found[label.section], {collective != nullptr ? std::string{name_of(collective->kind)} : "shift", tensor.empty() ? label.tensor : tensor,
                                 names_along(axes), 1, received});
    }
    std::map<std::string, std::vector<JaxTransfer>> result;
    for (auto& [section, all] : found)
      for (Found& one : all) result[section].push_back({one.kind, one.tensor, one.axes, one.times, Bytes{std::llround(one.received)}});
    return result;
  }

 private:
  struct Found {
    std::string kind, tensor;
    std::vector<std::string> axes;
    std::int64_t times;
    double received;
  };
  static void add(std::vector<Found>& all, Found one) {
    const auto known = std::find_if(all.begin(), all.end(),
                                    [&](const Found& f) { return std::tie(f.kind, f.tensor, f.axes) == std::tie(one.kind, one.tensor, one.axes); });
    if (known == all.end()) return all.push_back(std::move(one));
    ++known->times;
    known->received += one.received;
  }

  [[nodiscard]] std::vector<std::string> names_along(const std::vector<AxisView>& views) const {
    std::vector<std::string> names;
    for (const AxisView& view : views)
      if (view.size > 1)
        for (std::string& name : names_of(mesh_, axes_of_(view))) names.push_back(std::move(name));
    return names;
  }

  /// A broadcast or reduction is counted as its share of an all-gather or reduce-scatter in which each device is the root in turn.
  [[nodiscard]] double received_of(const Collective& collective) const {
    double devices = 1;
    for (const AxisView& axis : collective.axes) devices *= axis.size;
    const double others = (devices - 1) / devices, input = static_cast<double>(bytes_of(program_, collective.input).count());
    switch (collective.kind) {
      case CollectiveKind::all_gather: return others * static_cast<double>(bytes_of(program_, collective.output).count());
      case CollectiveKind::all_reduce: return 2 * others * input;
      case CollectiveKind::reduce_scatter:
      case CollectiveKind::all_to_all:
      case CollectiveKind::broadcast:
      case CollectiveKind::reduce: return others * input;
      case CollectiveKind::permute: return input;
    }
    return 0;
  }

  /// The share of the program's devices that run a task.
  double part_of_devices(const Guard& guard) {
    if (guard.empty()) return 1;
    std::int64_t all = 0, running = 0;
    for (const auto& [first, last] : program_.devices.intervals)
      for (int device = first; device < last; ++device) ++all, running += holds(guard, schedule_.mesh.coordinates(DeviceId{device})) ? 1 : 0;
    return all == 0 ? 0 : static_cast<double>(running) / static_cast<double>(all);
  }

  const Schedule& schedule_;
  const Program& program_;
  const Mesh& mesh_;
  const AxesOfView& axes_of_;
};

// ---- What JAX would do ----

struct Statement {
  std::string text;  // on arrays as they are stored
  std::vector<const JaxArray*> reads;
  std::vector<std::pair<std::string, std::string>> outs;  // a result and its sharding
  DType dtype = DType::bf16;
};

const JaxArray* array_named(const std::vector<JaxArray>& arrays, const std::string& tensor) {
  const auto found = std::find_if(arrays.begin(), arrays.end(), [&](const JaxArray& array) { return array.tensor.tensor == tensor; });
  return found == arrays.end() ? nullptr : &*found;
}

/// The collectives of a program with these inputs and outputs. `tensor`: what all of them are of, if it is not their operand.
Expected<std::vector<JaxTransfer>> inserted(const Statement& statement, const Mesh& mesh, Choose choose, const std::string& tensor) {
  ProgramText text;
  text.statements = {{statement.text, {}}};
  text.dtype = statement.dtype;
  for (const JaxArray* array : statement.reads) {
    text.shapes.push_back({fmt::format("{}={}x{}", array->tensor.tensor, array->shape[0], array->shape[1]), {}});
    text.shards.push_back({fmt::format("{}={}", array->tensor.tensor, to_text(array->sharding, mesh, 2)), {}});
  }
  for (const auto& [name, sharding] : statement.outs) text.outs.push_back({fmt::format("{}={}", name, sharding), {}});
  const auto program = read_program(text, mesh);
  if (!program) return program.error();
  const auto plan = plan_program(*program, choose);
  if (!plan) return plan.error();
  std::vector<JaxTransfer> transfers;
  for (const auto& action : plan->actions) {
    const auto* planned = std::get_if<PlannedStep>(&action);
    if (planned == nullptr || planned->step.kind == StepKind::slice) continue;
    const Operation* of = &program->operations[static_cast<std::size_t>(plan->forms[static_cast<std::size_t>(planned->before)].operation)];
    while (of->op == ArrayOp::transpose) of = &program->operations[static_cast<std::size_t>(of->operands[0])];
    add(transfers, {std::string{name_of(planned->step.kind)}, tensor.empty() ? of->name : tensor, names_of(mesh, planned->step.axes), 1,
                    planned->step.received});
  }
  return transfers;
}

Expected<JaxComparison> with_jax(const WorkloadPart& part, std::string computes, std::optional<ProductChoice> choice, const Statement& statement,
                                 const Mesh& mesh, const std::string& tensor = "") {
  JaxComparison comparison;
  comparison.layer = part.name;
  comparison.pass = part.pass;
  comparison.computes = std::move(computes);
  comparison.choice = std::move(choice);
  for (const auto& [choose, transfers, received] : {std::tuple{Choose::by_default, &comparison.jax, &comparison.jax_received},
                                                    {Choose::bytes, &comparison.fewest, &comparison.fewest_received}}) {
    auto found = inserted(statement, mesh, choose, tensor);
    if (!found) return found.error();
    *transfers = *std::move(found);
    *received = sum_of(*transfers);
  }
  return comparison;
}

/// Transposed in the product, of an array that may be stored transposed.
std::string written(const JaxArray& array, bool transposed) { return array.tensor.name + (array.tensor.transposed != transposed ? ".T" : ""); }

Expected<JaxComparison> compare_product(const WorkloadPart& part, const Product& product, const std::vector<JaxArray>& arrays, const Mesh& mesh) {
  const JaxArray &left = *array_named(arrays, product.left), &right = *array_named(arrays, product.right), &out = *array_named(arrays, product.out);
  const auto operand = [](const std::string& name, bool transposed) { return name + (transposed ? ".T" : ""); };
  Statement statement;
  statement.text =
      fmt::format("{} = {} @ {}", product.out, operand(product.left, product.transpose_left), operand(product.right, product.transpose_right));
  statement.reads = {&left, &right};
  statement.outs = {{product.out, to_text(out.sharding, mesh, 2)}};
  statement.dtype = part.dtype;
  const std::string computes =
      fmt::format("{} = {} @ {}", written(out, false), written(left, product.transpose_left), written(right, product.transpose_right));
  return with_jax(part, computes, part.product, statement, mesh);
}

/// The sums over the features that a norm needs of every token, as statements on whole arrays.
Expected<JaxComparison> compare_norm(const WorkloadPart& part, const std::vector<JaxArray>& arrays, const Mesh& mesh) {
  const JaxArray& x = *array_named(arrays, "X");
  const bool forward = part.pass == Pass::forward, plain = part.norm == Norm::layer;
  const std::string of = forward ? "X" : "dY";
  const std::size_t tokens = x.tensor.transposed ? 1 : 0;
  const std::string out = to_text(Sharding{{x.sharding.axes_of(tokens)}, {}}, mesh, 1);
  Statement statement;
  statement.dtype = DType::f32;
  statement.reads = {&x};
  if (!forward) statement.reads.push_back(array_named(arrays, of));
  if (plain) statement.text = fmt::format("first = sum({}, {}); ", of, 1 - tokens), statement.outs.emplace_back("first", out);
  statement.text += fmt::format("second = sum({} * X, {})", of, 1 - tokens);
  statement.outs.emplace_back("second", out);
  const std::string computes = plain ? fmt::format("sums of {0} and {0} * X over features", of) : fmt::format("sums of {} * X over features", of);
  return with_jax(part, computes, {}, statement, mesh, "sums");
}

Expected<JaxComparison> compare_relayout(const WorkloadPart& part, const std::vector<JaxArray>& arrays, const Mesh& mesh) {
  const bool forward = part.pass == Pass::forward;
  const JaxArray &from = *array_named(arrays, forward ? "X" : "dY"), &to = *array_named(arrays, forward ? "Y" : "dX");
  Statement statement;
  statement.text = fmt::format("{} = {}.T", to.tensor.tensor, from.tensor.tensor);
  statement.reads = {&from};
  statement.outs = {{to.tensor.tensor, to_text(to.sharding, mesh, 2)}};
  statement.dtype = part.dtype;
  const std::string computes = fmt::format("{} as {}", from.tensor.name, to.tensor.transposed ? "[features, tokens]" : "[tokens, features]");
  return with_jax(part, computes, {}, statement, mesh, from.tensor.name);
}

}  // namespace

Expected<std::vector<JaxComparison>> compare_with_jax(const WorkloadPart& part, const Schedule& schedule, const std::vector<JaxArray>& arrays,
                                                      const Mesh& mesh, const AxesOfView& axes_of) {
  const bool forward = part.pass == Pass::forward, is_norm = part.kind == WorkloadPart::Kind::norm;
  const std::string tensor = is_norm ? "sums" : part.kind == WorkloadPart::Kind::relayout ? (forward ? "X" : "dY") : "";
  auto by_section = PlanTransfers{schedule, mesh, axes_of}.find(tensor);
  std::vector<JaxComparison> comparisons;
  const auto keep = [&](Expected<JaxComparison> comparison, const std::string& section) -> Status {
    if (!comparison) return comparison.error();
    comparison->plan = std::move(by_section[section]);
    comparison->plan_received = sum_of(comparison->plan);
    comparisons.push_back(*std::move(comparison));
    return success();
  };
  if (const auto* products = std::get_if<Products>(&schedule.computes))
    for (std::size_t p = 0; p < products->size(); ++p) {
      const Product& product = (*products)[p];
      if (const Status ok = keep(compare_product(part, product, arrays, mesh), forward ? "" : product.out); !ok) return ok.error();
      if (!forward) comparisons.back().choice->dataflow = traits_of(part.product.dataflow).gradients[p].dataflow;
    }
  if (is_norm && !by_section.empty())
    if (const Status ok = keep(compare_norm(part, arrays, mesh), ""); !ok) return ok.error();
  if (part.kind == WorkloadPart::Kind::relayout)
    if (const Status ok = keep(compare_relayout(part, arrays, mesh), ""); !ok) return ok.error();
  return comparisons;
}

}  // namespace podsim

#include "workloads/sharded/chain.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>

#include "sim/base/invariant.hpp"

namespace podsim {

namespace {

constexpr std::size_t least_matrices = 3, most_matrices = 8;

/// A binary tree over the matrices [first, last].
struct Order {
  std::size_t first = 0, last = 0;
  std::shared_ptr<const Order> left{}, right{};  // null: one matrix
};
using OrderPtr = std::shared_ptr<const Order>;

/// All orders of products of an interval.
std::vector<OrderPtr> orders_of(std::size_t first, std::size_t last) {
  if (first == last) return {std::make_shared<const Order>(Order{first, last})};
  std::vector<OrderPtr> orders;
  for (std::size_t middle = first; middle < last; ++middle)
    for (const OrderPtr& left : orders_of(first, middle))
      for (const OrderPtr& right : orders_of(middle + 1, last)) orders.push_back(std::make_shared<const Order>(Order{first, last, left, right}));
  return orders;
}

/// The cheapest way to have the product of an interval in one sharding.
struct State {
  ReshardCost cost;
  Sharding made;             // what the last product, or the operand, is in; then converted
  std::size_t middle = 0;    // the interval's last product is [first, middle] @ [middle + 1, last]
  Sharding left{}, right{};  // its operands
};
using States = std::map<Sharding, State>;

class Search {
 public:
  Search(const ChainRequest& request, const std::vector<int>& inputs, Objective objective)
      : request_{request}, program_{request.program}, inputs_{inputs}, objective_{objective}, resharder_{program_.mesh, objective} {
    for (int axis = 0; axis < static_cast<int>(program_.mesh.axes().size()); ++axis)
      if (program_.mesh.axes()[static_cast<std::size_t>(axis)].size > 1) axes_.push_back(axis);
  }

  /// The best chain; with `order`, of that order alone. nullopt: there is none.
  std::optional<Chain> best(const Order* order) {
    if (!program_.iterated) return best_from(order, {});
    // The result takes the place of an input: one search per sharding of that input.
    std::optional<Chain> best;
    const auto place = static_cast<std::size_t>(std::find(inputs_.begin(), inputs_.end(), *program_.iterated) - inputs_.begin());
    for (const Sharding& own : allowed(place)) {
      if (request_.stop.requested()) return std::nullopt;
      auto found = best_from(order, std::pair{place, own});
      if (found && (!best || less(found->cost, best->cost, objective_))) best = std::move(found);
    }
    return best;
  }

  /// Whether some operand has no sharding.
  [[nodiscard]] std::optional<std::size_t> without_sharding() {
    for (std::size_t i = 0; i < inputs_.size(); ++i)
      if (allowed(i).empty()) return i;
    return std::nullopt;
  }

 private:
  [[nodiscard]] const Operation& input(std::size_t i) const { return program_.operations[static_cast<std::size_t>(inputs_[i])]; }
  [[nodiscard]] ArrayLayout layout(std::size_t first, std::size_t last) const {
    return {{input(first).extents[0], input(last).extents[1]}, size_of(program_.dtype)};
  }

  /// The shardings that an operand may have.
  std::vector<Sharding> allowed(std::size_t i) {
    if (request_.fixed.contains(input(i).name)) return {*input(i).sharding};
    const bool any = request_.replicate.contains(input(i).name);
    std::vector<Sharding> shardings;
    // From an array that is replicated, slices reach every sharding without partial sums.
    for (const auto& [sharding, way] : resharder_.all(layout(i, i), Sharding{}, axes_)) {
      std::size_t used = 0;
      for (const std::vector<int>& dim : sharding.dims) used += dim.size();
      if (any || used == axes_.size()) shardings.push_back(sharding);
    }
    return shardings;
  }

  void offer(States& states, const Sharding& sharding, const State& state) const {
    const auto [place, fresh] = states.try_emplace(sharding, state);
    if (!fresh && less(state.cost, place->second.cost, objective_)) place->second = state;
  }

  /// Adds all conversions.
  void close(States& states, const ArrayLayout& array) {
    const States made = states;
    for (const auto& [sharding, state] : made)
      for (const auto& [to, way] : resharder_.all(array, sharding, axes_)) {
        State converted = state;
        converted.cost = state.cost + way.cost;
        offer(states, to, converted);
      }
  }

  States leaf(std::size_t i, const std::optional<std::pair<std::size_t, Sharding>>& given) {
    States states;
    for (const Sharding& sharding : given && given->first == i ? std::vector{given->second} : allowed(i)) states[sharding] = {{}, sharding};
    close(states, layout(i, i));
    return states;
  }

  void join(States& states, const States& left, const States& right, std::size_t middle) const {
    for (const auto& [a, own] : left)
      for (const auto& [b, other] : right)
        if (const auto result = direct_product(a, b, 2)) offer(states, *result, {own.cost + other.cost, *result, middle, a, b});
  }

  std::optional<Chain> best_from(const Order* order, const std::optional<std::pair<std::size_t, Sharding>>& given) {
    table_.clear();
    const std::size_t n = inputs_.size();
    if (order != nullptr) fill(*order, given);
    else
      for (std::size_t length = 1; length <= n; ++length)
        for (std::size_t first = 0; first + length <= n; ++first) {
          if (request_.stop.requested()) return std::nullopt;
          const std::size_t last = first + length - 1;
          if (length == 1) {
            table_[{first, last}] = leaf(first, given);
            continue;
          }
          States states;
          for (std::size_t middle = first; middle < last; ++middle) join(states, table_.at({first, middle}), table_.at({middle + 1, last}), middle);
          close(states, layout(first, last));
          table_[{first, last}] = std::move(states);
        }
    const States& whole = table_.at({0, n - 1});
    const States::value_type* best = nullptr;
    const auto out = program_.out.find(program_.results[0]);
    for (const auto& entry : whole) {
      if (given ? entry.first != given->second : out != program_.out.end() ? entry.first != out->second : !entry.first.unreduced.empty()) continue;
      if (best == nullptr || less(entry.second.cost, best->second.cost, objective_)) best = &entry;
    }
    if (best == nullptr) return std::nullopt;
    return written(best->first, best->second);
  }

  void fill(const Order& order, const std::optional<std::pair<std::size_t, Sharding>>& given) {
    States states;
    if (order.left == nullptr) states = leaf(order.first, given);
    else {
      fill(*order.left, given);
      fill(*order.right, given);
      join(states, table_.at({order.left->first, order.left->last}), table_.at({order.right->first, order.right->last}), order.left->last);
      close(states, layout(order.first, order.last));
    }
    table_[{order.first, order.last}] = std::move(states);
  }

  // ---- The answer as a program ----

  Chain written(const Sharding& result, const State& state) {
    Chain chain;
    chain.cost = state.cost;
    chain.program = program_;
    chain.program.operations.clear();
    chain.program.out.clear();
    for (const int i : inputs_) {
      if (program_.iterated == i) chain.program.iterated = static_cast<int>(chain.program.operations.size());
      chain.program.operations.push_back(program_.operations[static_cast<std::size_t>(i)]);
    }
    chain.plan.forms.resize(inputs_.size());
    const auto [operation, form] = write(chain, 0, inputs_.size() - 1, result);
    Operation& last = chain.program.operations[static_cast<std::size_t>(operation)];
    last.name = program_.operations[static_cast<std::size_t>(program_.results[0])].name;
    chain.association = last_text_;
    chain.program.results = chain.program.outputs = {operation};
    if (const auto out = program_.out.find(program_.results[0]); out != program_.out.end()) chain.program.out[operation] = out->second;
    chain.plan.outputs[operation] = form;
    chain.replicated = std::all_of(inputs_.begin(), inputs_.end(), [&](int i) {
      const auto place = static_cast<std::size_t>(std::find(inputs_.begin(), inputs_.end(), i) - inputs_.begin());
      return chain.program.operations[place].sharding == Sharding{};
    });
    return chain;
  }

  /// Writes an interval's product in a sharding; its operation and form.
  std::pair<int, int> write(Chain& chain, std::size_t first, std::size_t last, const Sharding& wanted) {
    const State state = table_.at({first, last}).at(wanted);
    int operation = static_cast<int>(first), form = static_cast<int>(first);
    std::string text = input(first).name;
    if (first == last) {
      chain.program.operations[first].sharding = state.made;
      chain.plan.forms[first] = {operation, state.made};
    } else {
      const auto [left, left_form] = write(chain, first, state.middle, state.left);
      text = "(" + last_text_;
      const auto [right, right_form] = write(chain, state.middle + 1, last, state.right);
      text += " @ " + last_text_ + ")";
      Operation product{.op = ArrayOp::product, .operands = {left, right}, .name = fmt::format("product.{}", ++products_), .statement = 0};
      product.extents = layout(first, last).extents;
      product.where = program_.operations[static_cast<std::size_t>(program_.results[0])].where;
      operation = static_cast<int>(chain.program.operations.size());
      chain.program.operations.push_back(std::move(product));
      form = static_cast<int>(chain.plan.forms.size());
      chain.plan.forms.push_back({operation, state.made});
      chain.plan.actions.emplace_back(PlannedOperation{operation, {left_form, right_form}, form});
    }
    last_text_ = text;
    const Resharding& way = resharder_.all(layout(first, last), state.made, axes_).at(wanted);
    for (const ReshardStep& step : way.steps) {
      const int after = static_cast<int>(chain.plan.forms.size());
      chain.plan.forms.push_back({operation, step.after});
      chain.plan.actions.emplace_back(PlannedStep{form, after, step, operation, "the search found nothing cheaper"});
      form = after;
    }
    return {operation, form};
  }

  const ChainRequest& request_;
  const ShardedProgram& program_;
  const std::vector<int>& inputs_;
  Objective objective_;
  Resharder resharder_;
  std::vector<int> axes_;
  std::map<std::pair<std::size_t, std::size_t>, States> table_;  // by first and last matrix
  std::string last_text_;
  int products_ = 0;
};

/// The matrices of a product, left to right. Errors: something else.
Status collect(const ShardedProgram& program, int operation, std::vector<int>& inputs) {
  const Operation& one = program.operations[static_cast<std::size_t>(operation)];
  if (one.op == ArrayOp::input && one.extents.size() == 2) {
    if (std::find(inputs.begin(), inputs.end(), operation) != inputs.end()) return Diagnostic{one.where, fmt::format("expected every matrix of a chain once, found {} twice", quoted(one.name))};
    inputs.push_back(operation);
    return success();
  }
  if (one.op != ArrayOp::product || one.extents.size() != 2)
    return Diagnostic{one.where, fmt::format("expected a chain of products of matrices, found {}", one.op == ArrayOp::input ? quoted(one.name) : std::string{name_of(one.op)})};
  for (const int operand : one.operands)
    if (Status collected = collect(program, operand, inputs); !collected) return collected;
  return success();
}

}  // namespace

Expected<Chain> find_chain(const ChainRequest& request, const ChainTimer& timer) {
  const ShardedProgram& program = request.program;
  const SourceLocation where = program.operations[static_cast<std::size_t>(program.results[0])].where;
  if (program.statements.size() != 1) return Diagnostic{where, fmt::format("expected one statement, a chain of products, found {}", program.statements.size())};
  std::vector<int> inputs;
  if (Status collected = collect(program, program.results[0], inputs); !collected) return collected.error();
  const std::size_t least = program.iterated ? 2 : least_matrices;
  if (inputs.size() < least || inputs.size() > most_matrices)
    return Diagnostic{where, fmt::format("expected a chain of {} to {} matrices, found {}", least, most_matrices, inputs.size())};

  const auto cancelled_or_none = [&]() -> Diagnostic {
    return request.stop.requested() ? cancelled_work() : Diagnostic{where, "no shardings were found that divide all products of the chain"};
  };
  std::vector<std::unique_ptr<Search>> searches;
  for (const Objective objective : {Objective::bytes, Objective::collectives})
    if (request.minimise == Minimise::time || (objective == Objective::bytes) == (request.minimise == Minimise::bytes))
      searches.push_back(std::make_unique<Search>(request, inputs, objective));
  if (const auto bad = searches.front()->without_sharding())
    return Diagnostic{where, fmt::format("no sharding over all devices divides {}: expected other extents, or --replicate {}", quoted(program.operations[static_cast<std::size_t>(inputs[*bad])].name),
                                         program.operations[static_cast<std::size_t>(inputs[*bad])].name)};
  if (request.minimise != Minimise::time) {
    auto chain = searches.front()->best(nullptr);
    if (!chain) return cancelled_or_none();
    return *std::move(chain);
  }
  PODSIM_ASSERT(timer);
  std::optional<Chain> fastest;
  double least_time = 0;
  for (const OrderPtr& order : orders_of(0, inputs.size() - 1))
    for (const auto& search : searches) {
      auto chain = search->best(order.get());
      if (request.stop.requested()) return cancelled_work();
      if (!chain) continue;
      const auto time = timer(*chain);
      if (!time) return time.error();
      if (!fastest || *time < least_time) {
        least_time = *time;
        fastest = std::move(chain);
      }
    }
  if (!fastest) return cancelled_or_none();
  return *std::move(fastest);
}

}  // namespace podsim

#include "sim/schedule/reference_builder.hpp"

#include <cmath>

#include "sim/base/invariant.hpp"

namespace podsim {

namespace {

ReferenceNode node_of(ReferenceKind kind, std::vector<int> operands, Extents extents) {
  ReferenceNode node;
  node.kind = kind;
  node.operands = std::move(operands);
  node.extents = std::move(extents);
  return node;
}

}  // namespace

int ReferenceBuilder::add(ReferenceNode node) {
  program_.nodes.push_back(std::move(node));
  return static_cast<int>(program_.nodes.size()) - 1;
}

std::map<std::string, int> ReferenceBuilder::append(const ReferenceProgram& program, const std::map<std::string, int>& given) {
  std::vector<int> now;
  for (ReferenceNode node : program.nodes) {
    if (node.kind == ReferenceKind::input) {
      now.push_back(given.at(node.tensor));
      PODSIM_ASSERT(extents(now.back()) == node.extents);
      continue;
    }
    for (int& operand : node.operands) operand = now[static_cast<std::size_t>(operand)];
    now.push_back(add(std::move(node)));
  }
  std::map<std::string, int> outputs;
  for (const auto& [tensor, node] : program.outputs) outputs.emplace(tensor, now[static_cast<std::size_t>(node)]);
  return outputs;
}

int ReferenceBuilder::input(std::string tensor, Extents extents, std::int64_t below) {
  ReferenceNode node = node_of(ReferenceKind::input, {}, std::move(extents));
  node.tensor = std::move(tensor);
  node.below = below;
  return add(std::move(node));
}

int ReferenceBuilder::product(int a, int b, bool transpose_a, bool transpose_b) {
  PODSIM_ASSERT(extents(a).size() >= 2 && extents(b).size() == extents(a).size());
  Extents result = extents(a);
  const std::size_t rank = result.size();
  if (transpose_a) result[rank - 2] = extents(a)[rank - 1];
  result[rank - 1] = extents(b)[transpose_b ? rank - 2 : rank - 1];
  ReferenceNode node = node_of(ReferenceKind::product, {a, b}, std::move(result));
  node.transpose_left = transpose_a, node.transpose_right = transpose_b;
  return add(std::move(node));
}

int ReferenceBuilder::elementwise(ReferenceKind kind, int a, int b) {
  const std::optional<Extents> result = broadcast_extents(extents(a), extents(b));
  PODSIM_ASSERT(result && "operands meet");
  return add(node_of(kind, {a, b}, *result));
}

int ReferenceBuilder::with_number(ReferenceKind kind, double number, int a) {
  ReferenceNode node = node_of(kind, {a}, extents(a));
  node.number = number;
  return add(std::move(node));
}

int ReferenceBuilder::each(ReferenceKind kind, int a) { return add(node_of(kind, {a}, extents(a))); }

int ReferenceBuilder::sum(int a, int dim) {
  Extents result = extents(a);
  result.erase(result.begin() + dim);
  ReferenceNode node = node_of(ReferenceKind::sum, {a}, std::move(result));
  node.dim = dim;
  return add(std::move(node));
}

int ReferenceBuilder::sum_of_all(int a) { return sum(reshape(a, {element_count(extents(a))}), 0); }
int ReferenceBuilder::reshape(int a, Extents to) { return add(node_of(ReferenceKind::reshape, {a}, std::move(to))); }

int ReferenceBuilder::log_sum_exp(int a) {
  Extents result = extents(a);
  result.pop_back();
  return add(node_of(ReferenceKind::log_sum_exp, {a}, std::move(result)));
}

int ReferenceBuilder::one_hot(int index, std::int64_t n) {
  Extents result = extents(index);
  result.push_back(n);
  return add(node_of(ReferenceKind::one_hot, {index}, std::move(result)));
}

int ReferenceBuilder::take_rows(int table, int index) {
  Extents result = extents(index);
  result.insert(result.end(), extents(table).begin() + 1, extents(table).end());
  return add(node_of(ReferenceKind::take_rows, {table, index}, std::move(result)));
}

int ReferenceBuilder::add_rows(int b, int index, std::int64_t rows) {
  Extents result{rows};
  result.insert(result.end(), extents(b).begin() + static_cast<std::ptrdiff_t>(extents(index).size()), extents(b).end());
  return add(node_of(ReferenceKind::add_rows, {b, index}, std::move(result)));
}

ReferenceBuilder::Loss ReferenceBuilder::mean_square(int y, int target, double count) {
  const int difference = minus(y, target);
  const int loss = scaled(1 / count, sum_of_all(elementwise(ReferenceKind::multiply, difference, difference)));
  return {loss, scaled(2 / count, difference)};
}

ReferenceBuilder::Loss ReferenceBuilder::cross_entropy(int logits, int targets, double count) {
  const int chosen = one_hot(targets, extents(logits).back());
  const int of_target = sum(elementwise(ReferenceKind::multiply, chosen, logits), static_cast<int>(extents(logits).size()) - 1);
  const int loss = scaled(1 / count, sum_of_all(minus(log_sum_exp(logits), of_target)));
  return {loss, scaled(1 / count, minus(each(ReferenceKind::softmax, logits), chosen))};
}

int ReferenceBuilder::stepped(const Optimiser& optimiser, int parameters, int change) {
  if (optimiser.weight_decay != 0) change = plus(change, scaled(optimiser.weight_decay, parameters));
  return minus(parameters, scaled(optimiser.learning_rate, change));
}

int ReferenceBuilder::sgd(const Optimiser& optimiser, int parameters, int gradient) { return stepped(optimiser, parameters, gradient); }

int ReferenceBuilder::adamw(const Optimiser& optimiser, int parameters, int gradient, Moments& moments) {
  const double beta1 = optimiser.beta1, beta2 = optimiser.beta2, step = static_cast<double>(optimiser.step);
  moments.m = plus(scaled(beta1, moments.m), scaled(1 - beta1, gradient));
  moments.v = plus(scaled(beta2, moments.v), scaled(1 - beta2, elementwise(ReferenceKind::multiply, gradient, gradient)));
  const int mean = scaled(1 / (1 - std::pow(beta1, step)), moments.m), square = scaled(1 / (1 - std::pow(beta2, step)), moments.v);
  const int below = with_number(ReferenceKind::add_number, optimiser.epsilon, each(ReferenceKind::square_root, square));
  return stepped(optimiser, parameters, elementwise(ReferenceKind::divide, mean, below));
}

ReferenceProgram ReferenceBuilder::finish(std::string claim) && {
  program_.claim = std::move(claim);
  return std::move(program_);
}

}  // namespace podsim

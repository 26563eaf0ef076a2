// Writes graphs of operations (reference_program.hpp): nodes whose extents follow from their operands, and the losses and optimisers of training
// steps as compositions of them.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "sim/schedule/reference_program.hpp"
#include "sim/schedule/schedule.hpp"

namespace podsim {

/// Nodes are positions in the program. Operands that do not fit are asserts: the builder is for graphs that code writes.
class ReferenceBuilder {
 public:
  /// `below`: filled with whole numbers from 0 to below - 1 (ReferenceNode::below).
  int input(std::string tensor, Extents extents, std::int64_t below = 0);
  /// a @ b, operands transposed first if so marked.
  int product(int a, int b, bool transpose_a = false, bool transpose_b = false);
  /// add, subtract, multiply, divide; broadcasts.
  int elementwise(ReferenceKind kind, int a, int b);
  /// scale, add-number, reciprocal.
  int with_number(ReferenceKind kind, double number, int a);
  /// Kinds whose result has the extents of their operand: relu, gelu, square-root, softmax and so on.
  int each(ReferenceKind kind, int a);
  int sum(int a, int dim);
  int sum_of_all(int a);  // extents []
  int reshape(int a, Extents extents);
  int log_sum_exp(int a);
  int one_hot(int index, std::int64_t n);
  int take_rows(int table, int index);
  int add_rows(int b, int index, std::int64_t rows);
  /// Any other node.
  int add(ReferenceNode node);
  /// The nodes of a program whose inputs are these nodes, by tensor: an assert. The nodes of its outputs, by tensor.
  std::map<std::string, int> append(const ReferenceProgram& program, const std::map<std::string, int>& given);

  struct Loss {
    int loss, gradient;  // extents [], those of y or the logits
  };
  /// Over N = `count` elements, as LocalKind::mean_square.
  Loss mean_square(int y, int target, double count);
  /// Of logits [tokens, classes] and targets [tokens], over N = `count` tokens, as LocalKind::cross_entropy.
  Loss cross_entropy(int logits, int targets, double count);

  int sgd(const Optimiser& optimiser, int parameters, int gradient);
  struct Moments {
    int m, v;
  };
  /// The new parameters; `moments` become the new ones.
  int adamw(const Optimiser& optimiser, int parameters, int gradient, Moments& moments);

  [[nodiscard]] const Extents& extents(int node) const { return program_.nodes[static_cast<std::size_t>(node)].extents; }
  void name(int node, std::string name) { program_.nodes[static_cast<std::size_t>(node)].name = std::move(name); }
  void output(std::string tensor, int node) { program_.outputs.emplace_back(std::move(tensor), node); }
  ReferenceProgram finish(std::string claim) &&;

 private:
  int scaled(double number, int a) { return with_number(ReferenceKind::scale, number, a); }
  int plus(int a, int b) { return elementwise(ReferenceKind::add, a, b); }
  int minus(int a, int b) { return elementwise(ReferenceKind::subtract, a, b); }
  /// parameters - learning rate * (change + weight decay * parameters)
  int stepped(const Optimiser& optimiser, int parameters, int change);

  ReferenceProgram program_;
};

}  // namespace podsim

// The shape rules of Local operands: one function per rule, referenced by the rows of local_kind.hpp.
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace podsim {

struct Local;
struct Program;
struct Region;

/// Compares operands and collects messages about those that do not fit.
class OperandCheck {
 public:
  explicit OperandCheck(const Program& program) : program_{program} {}

  /// Requires equal element counts and dtypes.
  void pair(const Region& a, const Region& b, std::string_view a_name, std::string_view b_name);
  void dtypes(const Region& a, const Region& b, std::string_view a_name, std::string_view b_name);
  /// Requires equal lengths in every dimension and equal dtypes.
  void same(const Region& a, const Region& b, std::string_view a_name, std::string_view b_name);
  /// Requires one of these dtypes, bits as in local_kind.hpp.
  void dtype_among(const Region& region, unsigned dtypes, std::string_view name);
  void problem(std::string text) { problems_.push_back(std::move(text)); }

  [[nodiscard]] const std::vector<std::string>& problems() const { return problems_; }

 private:
  const Program& program_;
  std::vector<std::string> problems_;
};

// For rules: "[4,6]"; whether a number is whole and between 1 and 2^31; whether there are at most so many numberings, each of blocks that are some.
std::string lengths_text(const Region& region);
bool is_count(double number);
bool numberings_fit(const Local& local, OperandCheck& check, std::size_t most);

/// Reports operands that do not fit. The number of operands is that of the kind's row, and the regions fit their buffers.
using LocalShapes = void(const Local&, OperandCheck&);

/// A string as a template argument.
template <std::size_t size>
struct OperandName {
  char text[size]{};
  constexpr OperandName(const char (&literal)[size]) { std::copy_n(literal, size, text); }  // NOLINT(google-explicit-constructor): a name is its text
};

namespace shapes {

/// Every read region has as many elements as every written one.
void counts_of_result(const Local& local, OperandCheck& check);

/// All operands have as many elements as the first one. `names`: of the reads, then of the writes.
void counts_of_first(const Local& local, OperandCheck& check, std::span<const std::string_view> names);
template <OperandName... names>
void same_counts(const Local& local, OperandCheck& check) {
  static constexpr std::string_view all[]{names.text...};
  counts_of_first(local, check, all);
}

// A device's part of N features per token. The sums may be of another dtype than x: more is added to them in the all-reduce.
void norm_sums(const Local& local, OperandCheck& check);
void norm(const Local& local, OperandCheck& check);
void norm_grad_sums(const Local& local, OperandCheck& check);
void norm_grad(const Local& local, OperandCheck& check);

void attention(const Local& local, OperandCheck& check);
void attention_grad(const Local& local, OperandCheck& check);
void transpose(const Local& local, OperandCheck& check);

// k divides E, and E divides T k.
void expert_gates(const Local& local, OperandCheck& check);
void expert_gates_grad(const Local& local, OperandCheck& check);
void expert_combine(const Local& local, OperandCheck& check);
void expert_combine_grad(const Local& local, OperandCheck& check);

void sum_along(const Local& local, OperandCheck& check);
void broadcast_in_dim(const Local& local, OperandCheck& check);

void fft(const Local& local, OperandCheck& check);
void twiddle(const Local& local, OperandCheck& check);

// Matrices are float32: factorisations lose too much in bf16.
void iota(const Local& local, OperandCheck& check);
void getrf_panel(const Local& local, OperandCheck& check);
void trsm(const Local& local, OperandCheck& check);
void triangle(const Local& local, OperandCheck& check);
void gather_rows(const Local& local, OperandCheck& check);
void scatter_rows(const Local& local, OperandCheck& check);
void swap_rows(const Local& local, OperandCheck& check);
void solve(const Local& local, OperandCheck& check);

/// No flops, bytes or duration below 0.
void opaque(const Local& local, OperandCheck& check);

void add_rows(const Local& local, OperandCheck& check);
void one_hot(const Local& local, OperandCheck& check);

void pack_blocks(const Local& local, OperandCheck& check);
void unpack_blocks(const Local& local, OperandCheck& check);

// In training_shapes.cpp. Operands may be of two dtypes where the kind says so: a bf16 gradient of f32 parameters.
void convert(const Local& local, OperandCheck& check);
void mean_square(const Local& local, OperandCheck& check);
void mean_square_grad(const Local& local, OperandCheck& check);
void softmax_statistics(const Local& local, OperandCheck& check);
void cross_entropy(const Local& local, OperandCheck& check);
void cross_entropy_grad(const Local& local, OperandCheck& check);
void sgd(const Local& local, OperandCheck& check);
void adamw(const Local& local, OperandCheck& check);

}  // namespace shapes
}  // namespace podsim

// Shapes of the arrays of a program, and the shardings that its text fixes.
#pragma once

#include <array>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "workloads/sharded/program.hpp"

namespace podsim {

/// A dimension of an input, by name.
using NamedDim = std::pair<std::string, int>;

/// A dimension that its axes do not divide, and the input's dimension that would have to grow for it.
struct Indivisible {
  NamedDim input;
  std::int64_t extent = 1, grown = 1;  // of the input: as it is, and the next that divides
};

/// Appends operations to a program and finds their shapes.
class Typing {
 public:
  /// `divide`: an extent that its axes do not divide is an error.
  Typing(const Mesh& mesh, bool divide) : mesh_{mesh}, divide_{divide} {}

  void begin_statement(std::string target);
  /// Sets extents, and the sharding if it is fixed, of an operation whose operands and attributes are set. Errors: shapes that do not meet, and the like.
  Expected<int> add(Operation operation);
  /// The operation gets the statement's name.
  Expected<int> finish_statement(int operation, std::string text, const SourceLocation& where);
  /// P, L and U of a statement, with the names that it gives them.
  Expected<std::array<int, 3>> finish_factors(int matrix, const std::array<std::string, 3>& names, std::string text, const SourceLocation& where);
  /// Errors: the sharding does not divide the result.
  Status set_out(int operation, const Sharding& sharding, const SourceLocation& where);
  /// Dimensions of inputs that must grow together, or shapes would not meet any more.
  [[nodiscard]] std::vector<std::vector<NamedDim>> groups() const;

  ShardedProgram program;
  std::optional<Indivisible> indivisible;

 private:
  /// An input whose axes do not divide it, which only block-cyclic algorithms take.
  struct Undivided {
    Diagnostic problem;
    std::optional<Indivisible> grown;
  };
  using InputDim = std::pair<int, int>;  // an input, a dimension of it

  [[nodiscard]] const Operation& at(int operation) const { return program.operations[static_cast<std::size_t>(operation)]; }
  [[nodiscard]] std::string called(int operation) const;
  Status type(Operation& operation);
  Status type_product(Operation& operation);
  Status type_elementwise(Operation& operation);
  Status type_transpose(Operation& operation);
  Status type_local(Operation& operation);
  void find_varying(Operation& operation) const;
  Status rank_fits(const Operation& operation) const;
  Status type_to_blocks(Operation& operation);
  Status type_from_blocks(Operation& operation);
  Status type_blocks(Operation& operation);
  Status type_fft(Operation& operation);
  Status type_system(Operation& operation);
  Status type_values(Operation& operation);
  Status divides(int operation, const Extents& extents, const Sharding& sharding, std::string_view array, const SourceLocation& where);
  void same_dimension(int a, std::size_t dim_a, int b, std::size_t dim_b);
  [[nodiscard]] std::vector<std::optional<InputDim>> origins_of(const Operation& operation) const;
  InputDim root(InputDim dim) const;

  const Mesh& mesh_;
  bool divide_;
  std::string target_;
  std::vector<std::vector<std::optional<InputDim>>> origins_;  // per operation and dimension: an input's dimension that it grows with
  std::map<InputDim, InputDim> parents_;                       // union-find: dimensions that must grow together
  std::map<int, Undivided> undivided_;                         // by the operation
};

/// What a reading found.
struct Reading {
  Expected<ShardedProgram> program;
  std::optional<Indivisible> indivisible;
  std::vector<std::vector<NamedDim>> groups;
};
/// Reads a program with inputs as they are, then with larger and larger ones until all shardings divide. `read` reads with these extents of inputs.
/// Errors: those of `read`; a dimension that does not divide whatever the inputs; zeros that would count in a sum, or divide.
Expected<ShardedProgram> read_padded(std::map<std::string, Extents> inputs, const std::function<Reading(const std::map<std::string, Extents>&, bool divide)>& read);

}  // namespace podsim

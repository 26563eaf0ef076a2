// Names of tasks: what a transfer is called is the tensor that it carries, whatever the algorithm, dataflow, pass and transposition.
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <set>
#include <sstream>

#include "workloads/part.hpp"
#include "workloads/testing.hpp"

namespace podsim {
namespace {

/// The buffers of a program that hold the same tensor or a part of it, or partial sums of it: joined by every task but a product.
class Holders {
 public:
  explicit Holders(const Program& program) : program_{program}, parent_(program.buffers.size()) {
    std::iota(parent_.begin(), parent_.end(), std::size_t{0});
    for (const Task& task : program.tasks) {
      if (const auto* local = std::get_if<Local>(&task.op))
        for (const Region& region : local->reads) join(region, local->writes.front());
      if (const auto* shift = std::get_if<Shift>(&task.op)) join(shift->source, shift->target);
      if (const auto* collective = std::get_if<Collective>(&task.op)) join(collective->input, collective->output);
    }
  }

  /// The tensors of which a buffer holds something.
  std::set<std::string> tensors_in(BufferId buffer) {
    std::set<std::string> tensors;
    for (std::size_t b = 0; b < parent_.size(); ++b)
      if (program_.buffers[b].role != Role::scratch && root(b) == root(buffer.index())) tensors.insert(program_.buffers[b].tensor);
    return tensors;
  }

 private:
  std::size_t root(std::size_t b) const { return parent_[b] == b ? b : root(parent_[b]); }
  void join(const Region& a, const Region& b) { parent_[root(a.buffer.index())] = root(b.buffer.index()); }

  const Program& program_;
  std::vector<std::size_t> parent_;
};

/// The tensors that a label names: not those of its prefix, "dX:".
std::set<std::string> named_in(const std::string& label, const Program& program) {
  std::set<std::string> tensors;
  for (const Buffer& buffer : program.buffers) tensors.insert(buffer.tensor);
  std::set<std::string> named;
  std::istringstream words{label};
  for (std::string word; words >> word;)
    if (tensors.contains(word)) named.insert(word);
  return named;
}

/// The elements of a tensor that a device holds.
std::int64_t shard_of(const Program& program, const std::string& tensor) {
  for (const Buffer& buffer : program.buffers)
    if (buffer.tensor == tensor) return size_of(buffer).count();
  return 0;
}

/// Counts the transfers looked at. `slices`: what a tensor that is gathered or scattered is cut into.
int expect_true_names(const Schedule& schedule, std::int64_t slices) {
  const Program& program = schedule.programs.front();
  Holders holders{program};
  int transfers = 0;
  for (const Task& task : program.tasks) {
    const auto* shift = std::get_if<Shift>(&task.op);
    const auto* collective = std::get_if<Collective>(&task.op);
    const std::set<std::string> named = named_in(task.label, program);
    if (const auto* local = std::get_if<Local>(&task.op); local != nullptr && !named.empty()) {
      EXPECT_EQ(named, holders.tensors_in(local->reads.front().buffer)) << task.label;
    }
    if (shift == nullptr && collective == nullptr) continue;
    ++transfers;
    EXPECT_EQ(named, holders.tensors_in(shift != nullptr ? shift->source.buffer : collective->input.buffer)) << task.label;
    if (collective == nullptr || named.size() != 1) continue;
    const std::int64_t shard = shard_of(program, *named.begin());
    if (collective->kind == CollectiveKind::all_gather || collective->kind == CollectiveKind::reduce_scatter) {
      const Region& own = collective->kind == CollectiveKind::all_gather ? collective->input : collective->output;
      EXPECT_EQ(bytes_of(program, own).count() * slices, shard) << task.label;
    }
  }
  return transfers;
}

const std::vector<Mesh>& meshes() {
  static const std::vector<Mesh> all{testing::mesh_of(2, 4), testing::mesh_of(3, 2), testing::mesh_of(3, 3), testing::mesh_of(1, 4),
                                     testing::mesh_of(4, 1)};
  return all;
}
constexpr std::array<Dataflow, 3> dataflows{Dataflow::os, Dataflow::ls, Dataflow::rs};

/// visit(algorithm, mesh, problem, slices) for everything that applies; m, n and k differ, so that shards of X, W and Y do.
template <class Visit>
void for_each_product(Visit visit) {
  for (const GemmAlgorithmEntry& algorithm : gemm_algorithms())
    for (const Mesh& mesh : meshes())
      for (const Dataflow dataflow : dataflows)
        for (const std::int64_t slices : {1, 2}) {
          if (slices > 1 && !algorithm.needs_slice_count) continue;
          const GemmOptions options = gemm_options({}, algorithm.needs_slice_count ? slices : 0);
          for (const Pass pass : {Pass::both, Pass::forward}) {  // tp-ag: forward alone
            const auto multiples = required_multiples(algorithm, mesh, dataflow, pass, options);
            if (!multiples || (algorithm.only && *algorithm.only != dataflow)) continue;
            SCOPED_TRACE(std::string{algorithm.name} + " " + std::string{name_of(dataflow)} + " on " + to_text(mesh));
            visit(algorithm, mesh, GemmProblem{3 * multiples->m, 5 * multiples->n, 7 * multiples->k, DType::bf16, dataflow}, slices, pass);
            break;
          }
        }
}

TEST(Names, ATransferOfAPartIsCalledByTheTensorThatItCarries) {
  std::set<std::string_view> algorithms;
  int transfers = 0;
  for_each_product([&](const GemmAlgorithmEntry& algorithm, const Mesh& mesh, const GemmProblem& problem, std::int64_t slices, Pass of) {
    for (const bool transposed : {false, true})
      for (const Pass pass : {Pass::forward, Pass::backward}) {
        if (of == Pass::forward && pass == Pass::backward) continue;
        WorkloadPart part;
        part.name = "ff1";
        part.pass = pass;
        part.tokens = transposed ? problem.n : problem.m;
        part.outputs = transposed ? problem.m : problem.n;
        part.inputs = problem.k;
        part.product = {std::string{algorithm.name}, problem.dataflow, transposed, algorithm.needs_slice_count ? slices : 0};
        SCOPED_TRACE(std::string{transposed ? "transposed " : ""} + (pass == Pass::forward ? "forward" : "backward"));
        const auto schedule = part_schedule(mesh, part, {});
        ASSERT_TRUE(schedule) << to_text(schedule.error());
        transfers += expect_true_names(*schedule, slices);
        algorithms.insert(algorithm.name);
        const Product& first = std::get<Products>(schedule->computes).front();
        EXPECT_EQ(first.out, pass == Pass::forward ? "Y" : transposed ? "dW" : "dX");
      }
  });
  EXPECT_EQ(algorithms.size(), gemm_algorithms().size());
  EXPECT_GT(transfers, 1000);
}

TEST(Names, ATransferOfAPlainLayerIsCalledByTheTensorThatItCarries) {
  int transfers = 0;
  for_each_product([&](const GemmAlgorithmEntry& algorithm, const Mesh& mesh, const GemmProblem& problem, std::int64_t slices, Pass pass) {
    const auto schedule = make_layer(algorithm, mesh, problem, pass, gemm_options({}, algorithm.needs_slice_count ? slices : 0));
    ASSERT_TRUE(schedule) << to_text(schedule.error());
    transfers += expect_true_names(*schedule, slices);
  });
  EXPECT_GT(transfers, 500);
}

// Llama 3 70B on 256 chips with the weights sharded over all of them: forward gathers W, backward reduces its gradient.
TEST(Names, ShardedWeightsAreCalledWeights) {
  WorkloadPart part;
  part.name = "in_proj";
  part.tokens = std::int64_t{256} * 2048;
  part.inputs = 8192;
  part.outputs = 10240;
  part.product = {"collective", Dataflow::os, true, 0};
  const Mesh mesh = testing::mesh_of(1, 256);
  const std::int64_t weights = std::int64_t{8192} * 10240 * 2;
  std::set<std::string> seen;
  for (const Pass pass : {Pass::forward, Pass::backward}) {
    part.pass = pass;
    const auto schedule = part_schedule(mesh, part, {});
    ASSERT_TRUE(schedule) << to_text(schedule.error());
    const Program& program = schedule->programs.front();
    for (const Task& task : program.tasks) {
      const auto* collective = std::get_if<Collective>(&task.op);
      if (collective == nullptr || collective->axes.front().size == 1) continue;
      seen.insert(task.label);
      EXPECT_EQ(bytes_of(program, collective->input).count(), collective->kind == CollectiveKind::all_gather ? weights / 256 : weights) << task.label;
    }
  }
  EXPECT_EQ(seen, (std::set<std::string>{"gather W", "dW: reduce dW", "dX: gather W"}));
}

}  // namespace
}  // namespace podsim

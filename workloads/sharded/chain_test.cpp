#include "workloads/sharded/chain.hpp"

#include "sim/base/rng.hpp"
#include "workloads/sharded/testing.hpp"

namespace podsim::testing {
namespace {

ChainRequest request(const Mesh& mesh, const std::string& text, const std::string& shapes, Minimise minimise, const std::set<std::string>& replicate = {}) {
  ProgramText program = program_text(text, shapes);
  program.iterate = true;
  auto read = read_program(program, mesh);
  EXPECT_TRUE(read) << to_text(read.error());
  return {*std::move(read), {}, replicate, minimise};
}

const std::string four = "A=16x16; B=16x16; C=16x16; D=16x16";

TEST(Chain, FourMatricesOverEightDevices) {
  const Mesh mesh = mesh_with({{"x", 4}, {"y", 2}});
  const auto few = find_chain(request(mesh, "Y = A @ B @ C @ D", four, Minimise::collectives));
  ASSERT_TRUE(few);
  EXPECT_EQ(few->cost.collectives, 2);
  EXPECT_EQ(few->cost.received.count(), 2688);
  const auto small = find_chain(request(mesh, "Y = A @ B @ C @ D", four, Minimise::bytes));
  ASSERT_TRUE(small);
  EXPECT_EQ(small->cost.collectives, 4);
  EXPECT_EQ(small->cost.received.count(), 1536);
  const auto none = find_chain(request(mesh, "Y = A @ B @ C @ D", four, Minimise::bytes, {"A", "B", "C", "D"}));
  ASSERT_TRUE(none);
  EXPECT_EQ(none->cost.collectives, 0);
  EXPECT_TRUE(none->replicated);
}

/// Every association, sharding of operands and pair of shardings before each product, by plain recursion.
class Exhaustive {
 public:
  Exhaustive(const Mesh& mesh, std::vector<Extents> shapes, Objective objective) : resharder_{mesh, objective}, shapes_{std::move(shapes)}, objective_{objective} {
    for (int axis = 0; axis < static_cast<int>(mesh.axes().size()); ++axis) axes_.push_back(axis);
  }

  ReshardCost best() {
    std::optional<ReshardCost> least;
    for (const auto& [sharding, cost] : ways(0, shapes_.size() - 1))
      if (sharding.unreduced.empty() && (!least || less(cost, *least, objective_))) least = cost;
    return *least;
  }

 private:
  /// Everything that an interval can be in, without any table.
  std::vector<std::pair<Sharding, ReshardCost>> ways(std::size_t first, std::size_t last) {
    std::vector<std::pair<Sharding, ReshardCost>> made, all;
    const ArrayLayout array{{shapes_[first][0], shapes_[last][1]}, Bytes{4}};
    if (first == last) {
      for (const auto& [sharding, way] : resharder_.all(array, {}, axes_)) {
        std::size_t used = 0;
        for (const auto& dim : sharding.dims) used += dim.size();
        if (used == axes_.size()) made.emplace_back(sharding, ReshardCost{});
      }
    } else {
      for (std::size_t middle = first; middle < last; ++middle)
        for (const auto& [a, left] : ways(first, middle))
          for (const auto& [b, right] : ways(middle + 1, last))
            if (const auto result = direct_product(a, b, 2)) made.emplace_back(*result, left + right);
    }
    for (const auto& [sharding, cost] : made)
      for (const auto& [to, way] : resharder_.all(array, sharding, axes_)) all.emplace_back(to, cost + way.cost);
    // Equal shardings: the cheapest is enough, whatever follows.
    std::stable_sort(all.begin(), all.end(), [&](const auto& a, const auto& b) { return a.first != b.first ? a.first < b.first : less(a.second, b.second, objective_); });
    all.erase(std::unique(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.first == b.first; }), all.end());
    return all;
  }

  Resharder resharder_;
  std::vector<Extents> shapes_;
  Objective objective_;
  std::vector<int> axes_;
};

TEST(Chain, IsAsGoodAsEnumerationOfAllOrdersAndShardings) {
  Rng rng{7, stream_of("chains")};
  for (int i = 0; i < 12; ++i) {
    const Mesh mesh = i % 2 == 0 ? mesh_with({{"x", 4}, {"y", 2}}) : mesh_with({{"x", 2}, {"y", 2}});
    std::vector<std::int64_t> sides;
    for (int m = 0; m < 4; ++m) sides.push_back(8 << rng.below(3));
    const std::vector<Extents> matrices{{sides[0], sides[1]}, {sides[1], sides[2]}, {sides[2], sides[3]}};
    std::string shapes;
    for (std::size_t m = 0; m < 3; ++m)
      shapes += std::string(m == 0 ? "" : "; ") + static_cast<char>('A' + m) + "=" + std::to_string(matrices[m][0]) + "x" + std::to_string(matrices[m][1]);
    SCOPED_TRACE(shapes);
    for (const Minimise minimise : {Minimise::bytes, Minimise::collectives}) {
      const auto found = find_chain(request(mesh, "Y = A @ B @ C", shapes, minimise));
      ASSERT_TRUE(found);
      EXPECT_EQ(found->cost, (Exhaustive{mesh, matrices, minimise == Minimise::bytes ? Objective::bytes : Objective::collectives}.best()));
      EXPECT_EQ(found->plan.cost(), found->cost);
    }
  }
}

TEST(Chain, AnIterationEndsInTheShardingThatItBeganIn) {
  const Mesh mesh = mesh_with({{"x", 4}, {"y", 2}});
  const auto chain = find_chain(request(mesh, "X = A @ X", "A=16x16; X=16x16", Minimise::bytes));
  ASSERT_TRUE(chain) << to_text(chain.error());
  const Sharding begin = *chain->program.operations[static_cast<std::size_t>(*chain->program.iterated)].sharding;
  EXPECT_EQ(chain->plan.forms[static_cast<std::size_t>(chain->plan.outputs.begin()->second)].sharding, begin);
  EXPECT_GT(chain->cost.received.count(), 0);
  const auto free = find_chain(request(mesh, "X = A @ X", "A=16x16; X=16x16", Minimise::bytes, {"A"}));
  ASSERT_TRUE(free);
  EXPECT_EQ(free->cost.received.count(), 0);
}

TEST(Chain, RefusesWhatIsNoChain) {
  const Mesh mesh = mesh_with({{"x", 4}});
  const auto problem = [&](const std::string& text, const std::string& shapes) { return to_text(find_chain(request(mesh, text, shapes, Minimise::bytes)).error()); };
  EXPECT_EQ(problem("Y = A @ B", "A=16x16; B=16x16"), "program:1:7: expected a chain of 3 to 8 matrices, found 2");
  EXPECT_EQ(problem("Y = A @ B @ A", "A=16x16; B=16x16"), "shape:1:1: expected every matrix of a chain once, found \"A\" twice");
  EXPECT_EQ(problem("Y = A @ B @ relu(C)", "A=16x16; B=16x16; C=16x16"), "program:1:13: expected a chain of products of matrices, found relu");
  EXPECT_EQ(problem("Y = A @ B @ C", "A=6x6; B=6x6; C=6x6"), "program:1:11: no sharding over all devices divides \"A\": expected other extents, or --replicate A");
}

}  // namespace
}  // namespace podsim::testing

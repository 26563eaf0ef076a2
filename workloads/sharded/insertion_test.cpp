#include "workloads/sharded/insertion.hpp"

#include "sim/base/text.hpp"
#include "workloads/sharded/test_table.hpp"
#include "workloads/sharded/testing.hpp"

namespace podsim::testing {
namespace {

const std::string shapes = "A=48x24; B=24x96";

/// Bytes that a device must receive for collectives in the form of collectives_of(), from the definition alone: sizes and shardings of the table.
std::int64_t received_by_definition(const std::string& collectives, const TableRow& row, const std::string& c, const Mesh& mesh) {
  const auto axes_in = [](const std::string& spec) {
    std::vector<std::string> axes;
    for (const char letter : spec)
      if (letter >= 'x' && letter <= 'z') axes.emplace_back(1, letter);
    return axes;
  };
  const auto size = [&](const std::string& axis) { return std::int64_t{mesh.axis(axis)->size}; };
  std::int64_t sum = 0;
  std::string rest = collectives;
  for (std::size_t begin = 0; begin < rest.size();) {
    const std::size_t end = std::min(rest.find(", ", begin), rest.size());
    const std::vector<std::string> words = split(rest.substr(begin, end - begin), ' ');
    begin = end + 2;
    const std::int64_t whole = words[1] == "A" ? 48 * 24 * 4 : words[1] == "B" ? 24 * 96 * 4 : 48 * 96 * 4;
    const std::string spec = words[1] == "A" ? row.a : words[1] == "B" ? row.b : c;
    std::int64_t P = 1, parts = 1;
    for (const std::string& axis : split(words[2])) P *= size(axis);
    for (const std::string& axis : axes_in(spec)) parts *= size(axis);
    if (words[0] == "all-gather") sum += whole / parts * (P - 1);              // of the block before
    if (words[0] == "all-reduce") sum += 2 * (whole / parts * (P - 1) / P);    // of the block, which keeps its size
    if (words[0] == "reduce-scatter") sum += whole / (parts / P) * (P - 1) / P;  // of the block before
  }
  return sum;
}

class Table : public ::testing::TestWithParam<std::size_t> {
 protected:
  const TableRow& row() const { return table_rows[GetParam()]; }
};

TEST_P(Table, DefaultTakesItsColumnOnEveryMesh) {
  for (const auto& sizes : std::vector<std::vector<std::pair<std::string, int>>>{{{"x", 4}, {"y", 2}}, {{"x", 2}, {"y", 2}, {"z", 2}}, {{"x", 3}, {"y", 2}}}) {
    const Mesh mesh = mesh_with(sizes);
    const ShardedProgram program = program_with(mesh, "C = A @ B", shapes, "A=" + row().a + "; B=" + row().b);
    const auto plan = plan_program(program, Choose::by_default);
    ASSERT_TRUE(plan);
    EXPECT_EQ(collectives_of(program, *plan), row().collectives);
    EXPECT_EQ(output_of(program, *plan), row().c);
    EXPECT_EQ(plan->cost().received.count(), received_by_definition(row().collectives, row(), row().c, mesh));
    if (sizes[0].second == 4) {
      EXPECT_EQ(plan->cost().received.count(), row().received);
    }
    if (row().scattered.empty()) continue;
    const ShardedProgram scattered = program_with(mesh, "C = A @ B", shapes, "A=" + row().a + "; B=" + row().b, "C=" + row().scattered);
    const auto other = plan_program(scattered, Choose::by_default);
    ASSERT_TRUE(other);
    std::string expected = row().collectives;
    expected.replace(expected.find("all-reduce"), 10, "reduce-scatter");
    EXPECT_EQ(collectives_of(scattered, *other), expected);
    EXPECT_EQ(output_of(scattered, *other), row().scattered);
    EXPECT_EQ(other->cost().received.count(), received_by_definition(expected, row(), row().scattered, mesh));
    if (sizes[0].second == 4) {
      EXPECT_EQ(other->cost().received.count(), row().scattered_received);
    }
  }
}

TEST_P(Table, TheOtherWaysThatItNamesAreOffered) {
  if (row().other.empty()) return;
  const Mesh mesh = mesh_with({{"x", 4}, {"y", 2}});
  const ShardedProgram program = program_with(mesh, "C = A @ B", shapes, "A=" + row().a + "; B=" + row().b);
  std::size_t count = 1;
  bool found = false;
  for (std::size_t way = 0; way < count; ++way) {
    const auto plan = plan_program(program, Choose::time, [&](const Operation&, const auto&, const std::vector<CostedAlternative>& ways) -> Expected<std::size_t> {
      count = ways.size();
      return way;
    });
    ASSERT_TRUE(plan);
    const std::string last = row().other.substr(row().other.rfind(", ") == std::string::npos ? 0 : row().other.rfind(", ") + 2);
    if (!collectives_of(program, *plan).ends_with(last) || output_of(program, *plan) != row().other_c) continue;
    found = true;
    // Where an operand moves from one axis to another, there is something better than to gather and slice it.
    const std::int64_t by_definition = received_by_definition(row().other, row(), row().other_c, mesh);
    if (collectives_of(program, *plan) == row().other) {
      EXPECT_EQ(plan->cost().received.count(), by_definition);
    } else {
      EXPECT_LT(plan->cost().received.count(), by_definition) << collectives_of(program, *plan);
    }
    break;
  }
  EXPECT_TRUE(found) << row().other;
}

INSTANTIATE_TEST_SUITE_P(Rows, Table, ::testing::Range<std::size_t>(0, 18));

std::string chosen(const std::string& text, const std::string& of, const std::string& shards, const std::string& out = "") {
  const Mesh mesh = mesh_with({{"x", 4}});
  const ShardedProgram program = program_with(mesh, text, of, shards, out);
  const auto plan = plan_program(program, Choose::bytes);
  EXPECT_TRUE(plan);
  return collectives_of(program, *plan) + ": " + std::to_string(plan->cost().received.count());
}

TEST(Insertion, FewestBytesSlicesTheSmallOperandOrGathersIt) {
  EXPECT_EQ(chosen("C = A @ B", "A=1024x8192; B=8192x16", "A=-,x"), "all-reduce C x: 98304");
  EXPECT_EQ(chosen("C = A @ B", "A=64x128; B=128x4096", "A=-,x"), "all-gather A x: 24576");
}

TEST(Insertion, PartialSumsStayPendingWhileOperationsAreLinear) {
  const std::string of = "A=16x16; B=16x16; D=16x16; E=16x16";
  // One sum at the end, not one per product; the replicated D counts once.
  EXPECT_EQ(chosen("C = 2 * (A @ B) + D", "A=16x16; B=16x16; D=16x16", "A=-,x; B=x,-"), "all-reduce C x: 1536");
  EXPECT_EQ(chosen("C = A @ B; Y = C @ E", "A=16x16; B=16x16; E=16x16", "A=-,x; B=x,-"), "all-reduce Y x: 1536");
  EXPECT_EQ(chosen("C = A @ B + D @ E", of, "A=-,x; B=x,-; D=-,x; E=x,-"), "all-reduce C x: 1536");
  // relu needs the sum itself, and so does a second product over x.
  EXPECT_EQ(chosen("C = A @ B; Y = relu(C)", "A=16x16; B=16x16", "A=-,x; B=x,-", "Y=x,-"), "reduce-scatter C x: 768");
  EXPECT_EQ(chosen("C = A @ B; Y = C @ E", "A=16x16; B=16x16; E=16x16", "A=-,x; B=x,-; E=x,-", "Y=-,-"),
            "all-reduce C x, all-gather E x: 2304");
  EXPECT_EQ(chosen("C = A @ B", "A=16x16; B=16x16", "A=-,x; B=x,-", "C=unreduced(x):-,-"), ": 0");
}

TEST(Insertion, AnArrayIsConvertedOnceForAllItsUses) {
  EXPECT_EQ(chosen("C = relu(A) @ B; Y = gelu(A) @ B", "A=64x16; B=16x16", "A=x,-; B=x,-"), "all-gather B x: 768");
}

}  // namespace
}  // namespace podsim::testing

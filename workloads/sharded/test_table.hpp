// The table of products over two mesh axes: which collectives by default, which result, which other ways.
// Source: jax-ml/scaling-book, sharding.md (revision of Feb 2025), worked out for every pair of shardings.
#pragma once

#include <string>
#include <vector>

namespace podsim::testing {

struct TableRow {
  std::string a, b;          // shardings of A and B
  std::string collectives;   // as collectives_of() prints them
  std::string c;             // the sharding of C
  std::int64_t received;     // bytes per device, of A[48,24] @ B[24,96] in float32 on x=4,y=2
  std::string scattered{};   // a sharding of C that a reduce-scatter gives
  std::int64_t scattered_received = 0;
  std::string other{};       // another way, and the result that it gives without --out
  std::string other_c{};
};

inline const std::vector<TableRow> table_rows{
    {"x,-", "-,-", "", "x,-", 0},
    {"-,-", "-,y", "", "-,y", 0},
    {"x,-", "-,y", "", "x,y", 0},
    {"x,-", "-,x", "all-gather A x", "-,x", 3456, "", 0, "all-gather B x", "x,-"},
    {"-,x", "-,-", "all-gather A x", "-,-", 3456, "", 0, "all-reduce C x", "-,-"},
    {"-,-", "x,-", "all-gather B x", "-,-", 6912, "", 0, "all-reduce C x", "-,-"},
    {"-,x", "x,-", "all-reduce C x", "-,-", 27648, "x,-", 13824},
    {"-,x", "y,-", "all-gather A x, all-gather B y", "-,-", 8064, "", 0, "all-gather A x, all-reduce C y", "-,-"},
    {"x,y", "-,-", "all-gather A y", "x,-", 576},
    {"x,y", "y,-", "all-reduce C y", "x,-", 4608, "x,y", 2304},
    {"x,y", "-,y", "all-gather A y", "x,y", 576},
    {"x,y", "x,y", "all-gather A y, all-gather B x", "x,y", 4032},
    {"x,y", "y,x", "all-gather B x, all-reduce C y", "x,-", 8064, "x,y", 5760, "all-gather A x, all-reduce C y", "-,x"},
    {"x,-", "y,-", "all-gather B y", "x,-", 4608},
    {"x,-", "x,y", "all-gather B x", "x,y", 3456},
    {"-,y", "y,x", "all-reduce C y", "-,x", 4608, "y,x", 2304},
    {"(x+y),-", "-,-", "", "(x+y),-", 0},
    {"-,(x+y)", "(x+y),-", "all-reduce C x,y", "-,-", 32256, "(x+y),-", 16128},
};

}  // namespace podsim::testing

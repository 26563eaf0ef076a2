#include "sim/schedule/local_shapes.hpp"

#include <fmt/ranges.h>

#include <cassert>
#include <cmath>

#include "sim/schedule/schedule.hpp"

namespace podsim {

namespace {

using Lengths = std::vector<std::int64_t>;

Lengths lengths_of(const Region& region) {
  Lengths lengths;
  for (const Range& range : region.dims) lengths.push_back(range.length);
  return lengths;
}
std::string text_of(const Lengths& lengths) { return fmt::format("[{}]", fmt::join(lengths, ",")); }

}  // namespace

void OperandCheck::pair(const Region& a, const Region& b, std::string_view a_name, std::string_view b_name) {
  if (elements_of(a) != elements_of(b)) problem(fmt::format("{} has {} elements, {} has {}", a_name, elements_of(a), b_name, elements_of(b)));
  dtypes(a, b, a_name, b_name);
}

void OperandCheck::dtypes(const Region& a, const Region& b, std::string_view a_name, std::string_view b_name) {
  const DType of_a = program_.buffers[a.buffer.index()].dtype, of_b = program_.buffers[b.buffer.index()].dtype;
  if (of_a != of_b) problem(fmt::format("{} is {}, {} is {}", a_name, name_of(of_a), b_name, name_of(of_b)));
}

void OperandCheck::same(const Region& a, const Region& b, std::string_view a_name, std::string_view b_name) {
  const Lengths found = lengths_of(a), expected = lengths_of(b);
  if (found != expected) problem(fmt::format("{} is {}, {} is {}", a_name, text_of(found), b_name, text_of(expected)));
  dtypes(a, b, a_name, b_name);
}

namespace shapes {

void counts_of_result(const Local& local, OperandCheck& check) {
  for (const Region& write : local.writes)
    for (const Region& read : local.reads) check.pair(read, write, "the read region", "the written region");
}

void counts_of_first(const Local& local, OperandCheck& check, std::span<const std::string_view> names) {
  assert(names.size() == local.reads.size() + local.writes.size());
  for (std::size_t i = 1; i < names.size(); ++i)
    check.pair(local.reads.front(), i < local.reads.size() ? local.reads[i] : local.writes[i - local.reads.size()], names.front(), names[i]);
}

namespace {

/// x and sums of a norm whose N is at least `least`. False: nothing else can be compared with x.
bool norm_operands(const Local& local, OperandCheck& check, const Region& x, const Region& sums, bool sums_only = false) {
  if (x.dims.size() != 2) {
    check.problem(fmt::format("x has {} dimensions; expected {}", x.dims.size(), local.features_first ? "[features,tokens]" : "[tokens,features]"));
    return false;
  }
  const std::size_t feature_dim = local.features_first ? 0 : 1;
  const std::int64_t least = sums_only ? 1 : x.dims[feature_dim].length;  // sums do not depend on N
  if (!std::isfinite(local.factor) || local.factor < static_cast<double>(least))
    check.problem(fmt::format("a norm over {} features; expected at least {}", local.factor, least));
  Lengths one = lengths_of(x), two = one;
  one[feature_dim] = 1, two[feature_dim] = 2;
  const Lengths found = lengths_of(sums);
  if (found != one && found != two) check.problem(fmt::format("sums is {}; expected {} or {}", text_of(found), text_of(one), text_of(two)));
  return true;
}

void gradient_sums(OperandCheck& check, const Region& gradient, const Region& sums) {
  if (lengths_of(gradient) != lengths_of(sums))
    check.problem(fmt::format("the sums of the gradient are {}, sums is {}", text_of(lengths_of(gradient)), text_of(lengths_of(sums))));
}

/// `o` is o or its gradient.
void attention_operands(const Local& local, OperandCheck& check, const Region& qkv, std::string_view o_name, const Region& o) {
  if (qkv.dims.size() != 5)
    return check.problem(fmt::format("qkv has {} dimensions; expected {}", qkv.dims.size(),
                                     local.features_first ? "[groups,q+2,head,sequences,sequence]" : "[sequences,sequence,groups,q+2,head]"));
  const std::size_t q_dim = local.features_first ? 1 : 3;
  if (qkv.dims[q_dim].length < 3)
    return check.problem(fmt::format("dimension {} of qkv has {} elements; expected queries, keys and values", q_dim, qkv.dims[q_dim].length));
  Lengths expected = lengths_of(qkv);
  expected[q_dim] -= 2;
  if (lengths_of(o) != expected) check.problem(fmt::format("{} is {}; expected {}", o_name, text_of(lengths_of(o)), text_of(expected)));
  check.dtypes(o, qkv, o_name, "qkv");
}

}  // namespace

void norm_sums(const Local& local, OperandCheck& check) { norm_operands(local, check, local.reads[0], local.writes[0], true); }

void norm(const Local& local, OperandCheck& check) {
  const Region& x = local.reads[0];
  if (norm_operands(local, check, x, local.reads[1])) check.same(local.writes[0], x, "the result", "x");
}

void norm_grad_sums(const Local& local, OperandCheck& check) {
  const Region &dy = local.reads[0], &x = local.reads[1], &sums = local.reads[2];
  if (!norm_operands(local, check, x, sums)) return;
  check.same(dy, x, "dy", "x");
  gradient_sums(check, local.writes[0], sums);
}

void norm_grad(const Local& local, OperandCheck& check) {
  const Region &dy = local.reads[0], &x = local.reads[1], &sums = local.reads[2];
  if (!norm_operands(local, check, x, sums)) return;
  check.same(dy, x, "dy", "x");
  gradient_sums(check, local.reads[3], sums);
  check.same(local.writes[0], x, "dx", "x");
}

void attention(const Local& local, OperandCheck& check) { attention_operands(local, check, local.reads[0], "o", local.writes[0]); }

void attention_grad(const Local& local, OperandCheck& check) {
  attention_operands(local, check, local.reads[1], "do", local.reads[0]);
  check.same(local.writes[0], local.reads[1], "dqkv", "qkv");
}

void transpose(const Local& local, OperandCheck& check) {
  const Region &from = local.reads.front(), &to = local.writes.front();
  if (from.dims.size() < 2) return check.problem(fmt::format("the read region has {} dimensions; expected tokens and features", from.dims.size()));
  Lengths expected = lengths_of(from);
  std::rotate(expected.begin(), local.features_first ? expected.end() - 1 : expected.begin() + 1, expected.end());
  if (lengths_of(to) != expected)
    check.problem(fmt::format("the transpose of {} is {}; expected {}", text_of(lengths_of(from)), text_of(lengths_of(to)), text_of(expected)));
  check.dtypes(from, to, "the read region", "the written region");
}

void sum_along(const Local& local, OperandCheck& check) {
  const Lengths from = lengths_of(local.reads.front()), to = lengths_of(local.writes.front());
  int summed = 0;
  bool fits = from.size() == to.size();
  for (std::size_t i = 0; fits && i < from.size(); ++i)
    if (from[i] != to[i]) fits = to[i] == 1 && ++summed == 1;
  if (!fits)
    check.problem(fmt::format("the sum of {} is {}; expected the same lengths with 1 in the place of one of them", text_of(from), text_of(to)));
  check.dtypes(local.reads.front(), local.writes.front(), "the read region", "the written region");
}

void broadcast_in_dim(const Local& local, OperandCheck& check) {
  const Lengths from = lengths_of(local.reads.front()), to = lengths_of(local.writes.front());
  bool fits = from.size() == to.size();
  for (std::size_t i = 0; fits && i < from.size(); ++i) fits = from[i] == to[i] || from[i] == 1;
  if (!fits)
    check.problem(fmt::format("{} is broadcast to {}; expected equally many dimensions, each of length 1 or as written", text_of(from), text_of(to)));
  check.dtypes(local.reads.front(), local.writes.front(), "the read region", "the written region");
}

}  // namespace shapes
}  // namespace podsim

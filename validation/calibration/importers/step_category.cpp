#include "validation/calibration/importers/step_category.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace podsim {

namespace {

using Words = std::pair<std::string_view, std::string_view>;  // hlo_category or opcode -> category

constexpr std::array<Words, 51> words = {{{"dot", "matmul"},
                                          {"convolution", "matmul"},
                                          {"convolution fusion", "matmul"},
                                          {"megacore fusion", "matmul"},
                                          {"loop fusion", "elementwise"},
                                          {"input fusion", "elementwise"},
                                          {"output fusion", "elementwise"},
                                          {"custom fusion", "elementwise"},
                                          {"fusion", "elementwise"},
                                          {"non-fusion elementwise", "elementwise"},
                                          {"broadcast", "elementwise"},
                                          {"reduce", "elementwise"},
                                          {"reduce-window", "elementwise"},
                                          {"iota", "elementwise"},
                                          {"select-and-scatter", "elementwise"},
                                          {"rng-bit-generator", "elementwise"},
                                          {"data formatting", "copy"},
                                          {"copy", "copy"},
                                          {"copy fusion", "copy"},
                                          {"copy-start", "copy"},
                                          {"copy-done", "copy"},
                                          {"copy-start/done", "copy"},
                                          {"dynamic-slice", "copy"},
                                          {"dynamic-update-slice", "copy"},
                                          {"slice", "copy"},
                                          {"pad", "copy"},
                                          {"concatenate", "copy"},
                                          {"transpose", "copy"},
                                          {"reshape", "copy"},
                                          {"gather", "copy"},
                                          {"scatter", "copy"},
                                          {"send", "send"},
                                          {"send-done", "send"},
                                          {"recv", "send"},
                                          {"recv-done", "send"},
                                          {"infeed", "host"},
                                          {"outfeed", "host"},
                                          {"host send", "host"},
                                          {"host recv", "host"},
                                          {"host send-done", "host"},
                                          {"host recv-done", "host"},
                                          {"while", "control"},
                                          {"conditional", "control"},
                                          {"call", "control"},
                                          // What podsim tells of its own kinds of work, in place of a category of XLA's.
                                          {"fft", "fft"},
                                          {"factorisation", "factorisation"},
                                          {"loss", "loss"},
                                          {"optimiser", "optimiser"},
                                          {"opaque", "opaque"},
                                          {"function call", "call"},
                                          {"custom-call", "custom-call"}}};

std::size_t end_in(std::string_view name, std::string_view end) {
  const std::size_t at = name.find(end);
  if (at == std::string_view::npos) return at;
  const std::string_view behind = name.substr(at + end.size());
  return behind.empty() || behind.front() == '.' ? at : std::string_view::npos;
}

constexpr std::string_view start = "-start", update = "-update", finish = "-done";

bool says(std::string_view text, std::string_view word) { return text.find(word) != std::string_view::npos; }

}  // namespace

bool is_start(std::string_view name) { return end_in(name, start) != std::string_view::npos; }
bool is_done(std::string_view name) { return end_in(name, finish) != std::string_view::npos; }

bool is_update(std::string_view name) {
  return end_in(name, update) != std::string_view::npos && !name.starts_with("dynamic-");  // dynamic-update-slice is whole
}

std::string without_end(std::string_view name) {
  for (const std::string_view end : {start, finish})
    if (const std::size_t at = end_in(name, end); at != std::string_view::npos)
      return std::string{name.substr(0, at)} + std::string{name.substr(at + end.size())};
  return std::string{name};
}

std::string start_of_done(std::string_view name, std::string_view text) {
  const std::size_t equals = text.find(" = ");
  if (equals != std::string_view::npos) {
    const std::size_t opcode = std::min(text.find("-done(", equals), text.find("-update(", equals));
    const std::size_t percent = opcode == std::string_view::npos ? opcode : text.find('%', opcode);
    if (percent != std::string_view::npos) {
      const std::string_view word = text.substr(percent + 1, text.find_first_of(",) ", percent) - percent - 1);
      const std::string_view before = text.substr(0, opcode);
      const bool exchange = before.ends_with(" send") || before.ends_with(" recv");  // their starts have no -start
      if (is_start(word) || exchange) return std::string{word};
    }
  }
  std::string begin{name};
  for (const std::string_view end : {finish, update})
    if (const std::size_t at = begin.find(end); at != std::string::npos) return begin.replace(at, end.size(), start);
  return begin;
}

HloOp as_synchronous(HloOp op) {
  const bool generic = op.name.starts_with("async-collective");
  if (!is_start(op.opcode) && !(generic && is_start(op.name))) return op;
  op.opcode = without_end(op.opcode);
  const std::size_t count = std::max<std::size_t>(generic ? 1 : op.operands.size(), 1);
  if (op.opcode != "all-reduce" && op.results.size() >= 2 * count) {  // an all-reduce's start has its results alone
    const auto first = op.results.begin(), middle = first + static_cast<std::ptrdiff_t>(count);
    op.operands.assign(first, middle);
    op.results = std::vector<HloShape>(middle, middle + static_cast<std::ptrdiff_t>(count));
  }
  if (generic && op.operands.size() == 1 && op.results.size() == 1) {
    const auto in = size_of(op.operands.front()), out = size_of(op.results.front());
    if (in && out && *in < *out) op.opcode = "all-gather";
    if (in && out && *out < *in) op.opcode = "reduce-scatter";
  }
  return op;
}

std::string step_category(const HloOp& whole, std::string_view text, std::string_view hlo_category) {
  const HloOp op = as_synchronous(whole);
  if (const auto kind = observed_op_of(op, hlo_category)) return std::string{podsim::name_of(*kind)};
  const auto among_words = [](std::string_view word) { return std::ranges::find(words, word, &Words::first); };
  for (const std::string_view word : {std::string_view{whole.opcode}, hlo_category}) {
    HloOp named;
    named.opcode = without_end(word);
    if (const auto kind = observed_op_of(named, {})) return std::string{podsim::name_of(*kind)};
  }
  if (op.name.starts_with("async-collective")) return "collective";
  if (op.opcode == "custom-call" || hlo_category == "custom-call")
    for (const std::string_view word : {"attention", "splash", "flash"})
      if (says(op.name, word) || says(text, word)) return "attention";
  for (const std::string_view word : {hlo_category, std::string_view{op.opcode}})
    if (const auto found = among_words(word); found != words.end()) return std::string{found->second};
  return hlo_category.empty() && op.opcode.empty() ? "other" : is_start(op.opcode) || is_done(op.opcode) ? "copy" : "elementwise";
}

}  // namespace podsim

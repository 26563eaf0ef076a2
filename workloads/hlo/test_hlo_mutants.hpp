// Texts of modules, mutated at random.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/rng.hpp"
#include "workloads/hlo/hlo_loops.hpp"
#include "workloads/hlo/hlo_module.hpp"

namespace podsim::test {

class Mutants {
 public:
  explicit Mutants(std::uint64_t seed) : random_{seed} {}

  std::string next(std::string_view module) {
    std::string text{module};
    for (int i = random_.between(1, 2); i > 0; --i) mutate(text);
    return text;
  }

 private:
  void mutate(std::string& text) {
    if (text.empty()) return;
    const std::size_t at = random_.below(text.size());
    static const std::vector<std::string> words{"(",
                                                ")",
                                                "{",
                                                "}",
                                                "[",
                                                "]",
                                                ",",
                                                "=",
                                                "%",
                                                "\"",
                                                "\n",
                                                " ",
                                                "->",
                                                "f32[8]",
                                                "ROOT ",
                                                "4611686018427387904",
                                                "-1",
                                                "0",
                                                "9223372036854775807",
                                                "{...}",
                                                "%x",
                                                "%body",
                                                "ENTRY ",
                                                "/*",
                                                "*/",
                                                "constant",
                                                "-start(",
                                                "-done(",
                                                "calls=%fused",
                                                "T(8,128)",
                                                "S(1)",
                                                "<=[4]",
                                                "x",
                                                "_",
                                                "?",
                                                "tuple("};
    switch (random_.below(6)) {
      case 0: text.erase(at, 1 + random_.below(8)); break;
      case 1: text.insert(at, words[random_.below(words.size())]); break;
      case 2: text[at] = static_cast<char>(random_.below(128)); break;
      case 3: {  // a piece of it somewhere else
        const std::string piece = text.substr(at, random_.below(80));
        text.insert(random_.below(text.size()), piece);
        break;
      }
      case 4: {  // another number
        const std::size_t digit = text.find_first_of("0123456789", at);
        if (digit != std::string::npos) text.replace(digit, 1, std::to_string(random_.next() >> random_.below(64)));
        break;
      }
      default: text.resize(at); break;  // cut off
    }
  }
  Rng random_;
};

/// The largest trip count that a loop of the module tells.
inline std::int64_t trips_of(const HloModule& module) {
  std::int64_t most = 0;
  for (const HloComputation& computation : module.computations)
    for (const HloInstruction& instruction : computation.instructions)
      if (instruction.opcode == HloOpcode::while_)
        if (const auto trips = trip_count_of(module, computation, instruction, {})) most = std::max(most, trips->count);
  return most;
}

}  // namespace podsim::test

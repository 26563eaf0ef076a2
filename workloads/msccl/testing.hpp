// What tests of MSCCL algorithms share. Not for production code.
#pragma once

#include <gtest/gtest.h>

#include <fmt/format.h>

#include <string>
#include <vector>

#include "sim/base/text.hpp"
#include "workloads/msccl/msccl_schedule.hpp"
#include "workloads/msccl/read_msccl.hpp"

namespace podsim::testing {

/// An algorithm's XML. A GPU is "chunks of input, output, scratch | thread block | thread block ..", a thread block "send receive channel: step;
/// step; ..", a step "kind source target", as "rrc i0 i0", with "xN" for N chunks, "@b.s" for the step that it waits for and "!" if others wait for
/// it.
inline std::string msccl_text(const std::string& collective, bool in_place, const std::vector<std::string>& gpus, int channels = 4) {
  const auto words = [](std::string_view text, char separator = ' ') {
    std::vector<std::string> found;
    for (const std::string& word : split(text, separator))
      if (!trimmed(word).empty()) found.emplace_back(trimmed(word));
    return found;
  };
  std::string xml =
      fmt::format("<algo name=\"test\" proto=\"Simple\" nchannels=\"{}\" nchunksperloop=\"1\" ngpus=\"{}\" coll=\"{}\" inplace=\"{}\">\n", channels,
                  gpus.size(), collective, in_place ? 1 : 0);
  for (std::size_t g = 0; g < gpus.size(); ++g) {
    const auto parts = split(gpus[g], '|');
    const auto chunks = words(parts[0]);
    xml += fmt::format("<gpu id=\"{}\" i_chunks=\"{}\" o_chunks=\"{}\" s_chunks=\"{}\">\n", g, chunks[0], chunks[1], chunks[2]);
    for (std::size_t b = 1; b < parts.size(); ++b) {
      const auto halves = split(parts[b], ':');
      const auto ends = words(halves[0]);
      xml += fmt::format("<tb id=\"{}\" send=\"{}\" recv=\"{}\" chan=\"{}\">\n", b - 1, ends[0], ends[1], ends[2]);
      const auto steps = words(halves[1], ';');
      for (std::size_t s = 0; s < steps.size(); ++s) {
        std::string kind, source_buffer = "i", source = "-1", target_buffer = "o", target = "-1", count, block = "-1", step = "-1";
        bool tells = false;
        for (const std::string& word : words(steps[s])) {
          if (kind.empty())
            kind = word;
          else if (word == "!")
            tells = true;
          else if (word[0] == 'x')
            count = word.substr(1);
          else if (word[0] == '@')
            block = word.substr(1, word.find('.') - 1), step = word.substr(word.find('.') + 1);
          else if (source == "-1")
            source_buffer = word.substr(0, 1), source = word.substr(1);
          else
            target_buffer = word.substr(0, 1), target = word.substr(1);
        }
        if (count.empty()) count = kind == "nop" ? "0" : "1";
        xml += fmt::format(R"(<step s="{}" type="{}" srcbuf="{}" srcoff="{}" dstbuf="{}" dstoff="{}" cnt="{}" depid="{}" deps="{}" hasdep="{}"/>)"
                           "\n",
                           s, kind, source_buffer, source, target_buffer, target, count, block, step, tells ? 1 : 0);
      }
      xml += "</tb>\n";
    }
    xml += "</gpu>\n";
  }
  return xml + "</algo>\n";
}

inline MscclAlgorithm msccl(const std::string& text) {
  auto algorithm = read_msccl(text, "a.xml");
  EXPECT_TRUE(algorithm) << to_text(algorithm.error()) << "\n" << text;
  return algorithm ? *std::move(algorithm) : MscclAlgorithm{};
}

/// An all-reduce of P GPUs in place, one chunk each, by a ring of one thread block per GPU: 2(P - 1) messages each.
inline std::string ring_text(int P, bool fused) {
  std::vector<std::string> gpus;
  for (int g = 0; g < P; ++g) {
    const auto at = [&](int chunk) { return "i" + std::to_string(((g - chunk) % P + P) % P); };
    std::string steps = fmt::format("s {0} {0}; ", at(0));
    for (int k = 1; k < 2 * P - 2; ++k) {
      const bool reduces = k < P;
      const char* kind = k < P - 1 ? "rrs" : reduces ? "rrcs" : "rcs";
      steps += fused ? fmt::format("{0} {1} {1}; ", kind, at(k)) : fmt::format("{0} {1} {1}; s {1} {1}; ", reduces ? "rrc" : "r", at(k));
    }
    gpus.push_back(fmt::format("{} 0 0 | {} {} 0: {} r {} {}", P, (g + 1) % P, (g + P - 1) % P, steps, at(2 * P - 2), at(2 * P - 2)));
  }
  return msccl_text("allreduce", true, gpus);
}

}  // namespace podsim::testing

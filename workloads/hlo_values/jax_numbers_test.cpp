// Modules that XLA compiled give the numbers that JAX had from them. validation/aot/jax_numbers.py writes the files, with jax 0.10.2 on emulated CPU
// devices; modules of TPUs and GPUs (NAME_v5e, NAME_h100) beside the numbers of the same program on the CPU.
#include <algorithm>
#include <bit>
#include <cmath>
#include <filesystem>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zlib.h>
#include <nlohmann/json.hpp>

#include "algorithms/collectives/collectives.hpp"
#include "sim/base/test_cases.hpp"
#include "sim/engine/numeric/check.hpp"
#include "sim/schedule/calls.hpp"
#include "sim/schedule/lower.hpp"
#include "workloads/hlo/hlo_schedule.hpp"
#include "workloads/hlo/read_hlo.hpp"
#include "workloads/hlo_values/collectives.hpp"
#include "workloads/hlo_values/module_source.hpp"
#include "workloads/hlo_values/test_run.hpp"

namespace podsim {
namespace {

namespace fs = std::filesystem;
using test::module_of;

const fs::path folder = PODSIM_SOURCE_DIR "/validation/aot/numbers";

std::string inflated(const fs::path& path) {
  std::string text;
  const gzFile file = gzopen(path.c_str(), "rb");
  EXPECT_NE(file, nullptr) << path;
  if (file == nullptr) return text;
  std::vector<char> block(std::size_t{1} << 16);
  for (int count = 1; count > 0;) {
    count = gzread(file, block.data(), static_cast<unsigned>(block.size()));
    EXPECT_GE(count, 0) << path;
    if (count > 0) text.append(block.data(), static_cast<std::size_t>(count));
  }
  gzclose(file);
  return text;
}

std::vector<std::uint8_t> from_base64(const std::string& text) {
  constexpr std::string_view digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::vector<std::uint8_t> bytes;
  std::uint32_t bits = 0;
  int count = 0;
  for (const char c : text) {
    const std::size_t digit = digits.find(c);
    if (digit == std::string_view::npos) break;  // '='
    bits = bits << 6 | static_cast<std::uint32_t>(digit);
    count += 6;
    if (count >= 8) bytes.push_back(static_cast<std::uint8_t>(bits >> (count -= 8)));
  }
  return bytes;
}

/// The type that numpy calls `name`.
HloType type_named(const std::string& name) {
  const std::vector<std::pair<std::string, HloType>> types{{"float32", HloType::f32}, {"bfloat16", HloType::bf16}, {"int32", HloType::s32},
                                                           {"uint32", HloType::u32},  {"int8", HloType::s8},       {"bool", HloType::pred},
                                                           {"complex64", HloType::c64}};
  for (const auto& [known, type] : types)
    if (known == name) return type;
  ADD_FAILURE() << "a type that the test does not know: " << name;
  return HloType::f32;
}

HloArray array_of(HloType type, const std::vector<std::int64_t>& dims, const std::vector<std::uint8_t>& bytes) {
  HloArray array = zeros(type, dims);
  const auto width = type == HloType::pred ? std::size_t{1} : static_cast<std::size_t>(bits_of(type) / 8);
  EXPECT_EQ(bytes.size(), to_size(elements_of(array)) * width);
  for (std::size_t i = 0; i * width < bytes.size(); ++i) {
    std::uint64_t bits = 0;
    for (std::size_t byte = 0; byte < width; ++byte) bits |= static_cast<std::uint64_t>(bytes[i * width + byte]) << (8 * byte);
    if (is_complex(type))
      array.reals[i] = static_cast<double>(std::bit_cast<float>(static_cast<std::uint32_t>(bits))), array.imaginaries[i] = static_cast<double>(std::bit_cast<float>(static_cast<std::uint32_t>(bits >> 32)));
    else if (is_float(type))
      array.reals[i] = static_cast<double>(std::bit_cast<float>(static_cast<std::uint32_t>(type == HloType::bf16 ? bits << 16 : bits)));
    else
      array.integers[i] = wrapped(type, bits);
  }
  return array;
}

/// An argument or a result, on each device.
std::vector<HloArray> on_devices(const nlohmann::json& stored) {
  const HloType type = type_named(stored.at("type").get<std::string>());
  std::vector<HloArray> shards, arrays;
  for (const auto& shard : stored.at("shards"))
    shards.push_back(array_of(type, stored.at("dims").get<std::vector<std::int64_t>>(), from_base64(shard.get<std::string>())));
  for (const auto& place : stored.at("of_device")) arrays.push_back(shards.at(place.get<std::size_t>()));
  return arrays;
}

struct Numbers {
  std::string text;                           // of the module
  std::vector<std::vector<HloArrays>> given;  // [device][parameter]
  std::vector<HloArrays> wanted;              // [device]
  std::vector<MeshAxis> mesh;
};

Numbers numbers_of(const std::string& name) {
  Numbers numbers{inflated(folder / (name + ".hlo.gz")), {}, {}, {}};
  const auto tables = nlohmann::json::parse(inflated(folder / (name + ".json.gz")));
  for (const auto& axis : tables.at("mesh")) numbers.mesh.push_back({axis.at(0).get<std::string>(), axis.at(1).get<int>(), true, {}});
  for (const auto& input : tables.at("inputs")) {
    const std::vector<HloArray> arrays = on_devices(input);
    numbers.given.resize(arrays.size());
    for (std::size_t device = 0; device < arrays.size(); ++device) numbers.given[device].push_back({arrays[device]});
  }
  for (const auto& output : tables.at("outputs")) {
    const std::vector<HloArray> arrays = on_devices(output);
    numbers.wanted.resize(arrays.size());
    for (std::size_t device = 0; device < arrays.size(); ++device) numbers.wanted[device].push_back(arrays[device]);
  }
  return numbers;
}

std::vector<std::string> programs() {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator{folder})
    if (const std::string name = entry.path().filename().string(); name.ends_with(".hlo.gz")) names.push_back(name.substr(0, name.size() - 7));
  std::sort(names.begin(), names.end());
  return names;
}

/// The largest difference of two elements; infinite where one of them is no number.
double furthest(const HloArray& a, const HloArray& b) {
  double most = 0;
  for (const auto& [of_a, of_b] : {std::tie(a.reals, b.reals), std::tie(a.imaginaries, b.imaginaries)})
    for (std::size_t i = 0; i < of_a.size(); ++i) {
      if (of_a[i] == of_b[i]) continue;
      const double apart = std::fabs(of_a[i] - of_b[i]);
      most = std::max(most, std::isfinite(apart) ? apart : HUGE_VAL);
    }
  return most;
}

/// "" or how the module's results differ from JAX's. Whole numbers are equal. Real ones are as near to the exact result as those of two runs with
/// roundings of their types, times 4: JAX adds in another order.
std::string difference(const HloModule& module, const Numbers& numbers) {
  const auto run = [&](std::optional<std::uint64_t> seed) {
    HloRunOptions options;
    options.arithmetic.perturb_seed = seed;
    options.arithmetic.round_8_bits = true;
    return interpret(module, numbers.given, options);
  };
  const auto exact = run(std::nullopt);
  if (!exact) return to_text(exact.error());
  const auto first = run(1), second = run(2);
  if (!first || !second) return "with roundings: " + to_text((first ? second : first).error());
  if (exact->size() != numbers.wanted.size()) return "another number of devices";
  for (std::size_t result = 0; result < numbers.wanted.front().size(); ++result) {
    double roundings = 0, error = 0;
    for (std::size_t device = 0; device < numbers.wanted.size(); ++device) {
      const HloArray &wanted = numbers.wanted[device][result], &made = (*exact)[device].at(result);
      if (wanted.type != made.type || wanted.dims != made.dims)
        return fmt::format("result {} is {}, JAX's {}", result, short_text(made), short_text(wanted));
      if (wanted.integers != made.integers) return fmt::format("result {} has other whole numbers on device {}", result, device);
      for (const auto& rounded : {&*first, &*second}) roundings = std::max(roundings, furthest((*rounded)[device][result], made));
      error = std::max(error, furthest(wanted, made));
    }
    if (!std::isfinite(roundings) || !(error <= 4 * roundings))
      return fmt::format("result {} is off by {}, roundings explain {}", result, error, roundings);
  }
  return "";
}

TEST(JaxNumbers, TheModulesOfAllProgramsGiveThem) {
  const std::vector<std::string> names = programs();
  EXPECT_GE(names.size(), 26U);
  for (const std::string& name : names) {
    const Numbers numbers = numbers_of(name);
    EXPECT_EQ(difference(module_of(numbers.text), numbers), "") << name;
  }
}

/// The module with other attributes of an instruction.
template <class Change>
HloModule changed(const HloModule& module, std::size_t computation, std::size_t instruction, Change change) {
  HloModule other = module;
  HloInstruction& at = other.computations[computation].instructions[instruction];
  HloAttributes attributes = *at.attributes;
  change(attributes);
  at.attributes = std::move(attributes);
  return other;
}

TEST(JaxNumbers, NoModuleWithOneWrongCollectiveGivesThem) {
  std::map<HloOpcode, int> wrong;
  const std::vector<std::string> names = programs();
  for (std::size_t n = 0; n < names.size(); n += test::cases(1U, 9U)) {
    const std::string& name = names[n];
    const Numbers numbers = numbers_of(name);
    const HloModule module = module_of(numbers.text);
    for (std::size_t c = 0; c < module.computations.size(); ++c)
      for (std::size_t i = 0; i < module.computations[c].instructions.size(); ++i) {
        const HloInstruction& at = module.computations[c].instructions[i];
        if (!is_collective(at.opcode)) continue;
        SCOPED_TRACE(name + ": " + at.name);
        HloModule other;
        if (at.opcode == HloOpcode::collective_permute) {
          other = changed(module, c, i, [](HloAttributes& attributes) { attributes.source_target_pairs.pop_back(); });
        } else if (at.opcode == HloOpcode::all_reduce) {  // each device keeps its own
          std::vector<std::vector<std::int64_t>> alone;
          for (std::int64_t device = 0; device < devices_of(module); ++device) alone.push_back({device});
          other = changed(module, c, i, [&](HloAttributes& attributes) { attributes.replica_groups = ReplicaGroups::of_list(alone); });
        } else {  // every block is one place further
          const auto groups = collective_groups(module, at);
          ASSERT_TRUE(groups);
          auto rotated = *groups;
          for (auto& group : rotated) std::rotate(group.begin(), group.begin() + 1, group.end());
          other = changed(module, c, i, [&](HloAttributes& attributes) { attributes.replica_groups = ReplicaGroups::of_list(rotated); });
        }
        ++wrong[at.opcode];
        EXPECT_NE(difference(other, numbers), "");
      }
  }
  for (const HloOpcode opcode :
       {HloOpcode::collective_permute, HloOpcode::all_reduce, HloOpcode::all_gather, HloOpcode::all_to_all, HloOpcode::reduce_scatter})
    EXPECT_GE(wrong[opcode], test::cases(1, 0));
}

TEST(JaxNumbers, NoModuleThatIsWrongElsewhereGivesThem) {
  struct Case {
    std::string program, from, to;
  };
  for (const auto& [program, from, to] : std::vector<Case>{
           {"wang", "dynamic-slice(%param_0.7, %select_n.59,", "dynamic-slice(%param_0.7, %constant.28.clone.3,"},
           {"mlp_backward", "to_apply=%add.clone", "to_apply=%largest"},
           {"product_reduce_scatter", "lhs_contracting_dims={1}, rhs_contracting_dims={0}", "lhs_contracting_dims={1}, rhs_contracting_dims={1}"},
       }) {
    const Numbers numbers = numbers_of(program);
    std::string text = numbers.text;
    const std::size_t place = text.find(from);
    ASSERT_NE(place, std::string::npos) << program;
    text.replace(place, from.size(), to);
    text.replace(text.find("\n\n"), 2,
                 "\n\n%largest (a: f32[], b: f32[]) -> f32[] {\n  %a = f32[] parameter(0)\n  %b = f32[] parameter(1)\n  ROOT %c = f32[] maximum(%a, "
                 "%b)\n}\n\n");
    const auto module = parse_hlo(text, "m");
    EXPECT_TRUE(!module || difference(*module, numbers) != "") << program;
  }
}

// The schedules that are made of them compute what they say, on any inputs.
TEST(JaxNumbers, TheSchedulesOfTheModulesAreProven) {
  const std::vector<std::string> names = programs();
  for (std::size_t n = 0; n < names.size(); n += test::cases(1U, 6U)) {
    const std::string& name = names[n];
    if (name == "conditional_and_while") continue;  // how often its loop runs is data
    SCOPED_TRACE(name);
    const Numbers numbers = numbers_of(name);
    const auto module = std::make_shared<const HloModule>(module_of(numbers.text));
    const auto mesh = Mesh::make(numbers.mesh);
    ASSERT_TRUE(mesh);
    HloScheduleOptions options;
    options.values = true;
    auto made = hlo_schedule(*module, *mesh, options);
    if (!made) {
      ADD_FAILURE() << to_text(made.error());
      continue;
    }
    made->schedule.source = module_source({module, module}, std::move(made->kernels), {});
    made->schedule.computes = SourceResults{};
    const auto lowered = lower(inline_calls(made->schedule), ring_or_line());
    ASSERT_TRUE(lowered) << to_text(lowered.error());
    CheckOptions how;
    how.random_orders = 1;
    const auto report = check(*lowered, how);
    ASSERT_TRUE(report) << to_text(report.error());
    EXPECT_TRUE(report->ok) << to_text(report->problems);
  }
}

}  // namespace
}  // namespace podsim

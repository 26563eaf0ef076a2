#include "tools/command/workload.hpp"

#include <fmt/format.h>

#include <array>

namespace podsim {

namespace {

constexpr std::int64_t largest = std::int64_t{1} << 30;
constexpr std::array<const char*, 8> of_workloads{"only", "batch", "seq", "heads", "kv-heads", "head-dim", "ff", "layers"};

}  // namespace

po::options_description workload_options() {
  po::options_description group{"workload"};
  const auto word = [](const char* name) { return po::value<std::string>()->value_name(name); };
  group.add_options()  //
      ("workload", word("NAME|FILE"),
       "a transformer block: gpt3-block, megatron-nlg-block, llama3-8b-block,\nllama3-70b-block, llama3-405b-block (-mlp in place of -block: the MLP "
       "alone),\nor a textproto file (workloads/transformer.proto)")                                 //
      ("only", word("gemm|other"), "the products of --workload alone, or everything but them")       //
      ("batch", word("N"), "sequences; left out: as the workload says, or as many as devices")       //
      ("seq", word("N"), "tokens of a sequence")                                                     //
      ("heads", word("N"), "attention heads; the model's width follows: heads * head-dim")           //
      ("kv-heads", word("N"), "heads of keys and values")                                            //
      ("head-dim", word("N"), "width of a head")                                                     //
      ("ff", word("N"), "width of the MLP; left out with --heads: grows as the model's width does")  //
      ("layers", word("N"), "blocks that a device holds: counts in memory");
  return group;
}

Done no_workload_options(const Options& options) {
  for (const char* name : of_workloads)
    if (options.given(name)) return Diagnostic{option(name), "belongs to --workload"};
  return done();
}

Expected<Workload> workload_asked_for(const Options& options, int devices) {
  auto block = find_transformer_block(options.text("workload"));
  if (!block) return block.error().where.file.empty() ? Diagnostic{option("workload"), block.error().message} : block.error();
  const auto set = [&](const char* name, std::int64_t& field) -> Done {
    if (!options.has(name)) return done();
    const auto value = options.integer(name, 1, largest);
    if (!value) return value.error();
    field = *value;
    return done();
  };
  const std::int64_t width = block->heads * block->head_dim;
  const bool own_width = block->hidden != width, grouped = block->kv_heads != block->heads;
  for (const auto& [name, field] : {std::pair{"batch", &block->batch},
                                    {"seq", &block->sequence},
                                    {"heads", &block->heads},
                                    {"head-dim", &block->head_dim},
                                    {"layers", &block->layers}})
    if (auto ok = set(name, *field); !ok) return ok.error();
  if (!grouped) block->kv_heads = block->heads;
  if (auto ok = set("kv-heads", block->kv_heads); !ok) return ok.error();
  if (block->heads % block->kv_heads != 0)
    return Diagnostic{option("kv-heads"), fmt::format("must divide the {} heads, found {}", block->heads, block->kv_heads)};
  if (!own_width) block->hidden = block->heads * block->head_dim;
  if (block->heads * block->head_dim != width && !options.has("ff")) {
    if (block->ff * block->heads * block->head_dim % width != 0)
      return Diagnostic{{},
                        fmt::format("--ff is missing: {} of {} features is no whole number of {}", block->ff, width, block->heads * block->head_dim)};
    block->ff = block->ff * block->heads * block->head_dim / width;
  }
  if (auto ok = set("ff", block->ff); !ok) return ok.error();
  Only only = Only::everything;
  if (options.has("only")) {
    const auto named = only_named(options.text("only"));
    if (!named) return Diagnostic{option("only"), "expected gemm or other, found " + quoted(options.text("only"))};
    only = *named;
  }
  return workload_of(*block, devices, only);
}

}  // namespace podsim

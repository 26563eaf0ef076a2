#include "tools/command/tuning_request.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "sim/base/units.hpp"
#include "tools/command/scenario_options.hpp"
#include "tools/command/search_options.hpp"
#include "tools/console/caller.hpp"
#include "workloads/scenario/collective_choice.hpp"

namespace podsim {

namespace {

Expected<Workload> workload_to_tune(const Options& options, int devices) {
  const std::vector<std::string> gemms = options.texts("gemm");
  if (options.has("workload") == !gemms.empty())
    return Diagnostic{{},
                      gemms.empty() ? "expected --workload NAME or --gemm m=M,n=N,k=K, found neither" : "expected --workload or --gemm, found both"};
  if (options.has("workload")) return read_workload(fields_of(options), devices);
  if (auto ok = no_workload_options(options); !ok) return ok.error();
  std::vector<NamedProduct> products;
  for (const std::string& text : gemms) {
    const auto gemm = parse_gemm(text, DType::bf16, option("gemm"));
    if (!gemm) return gemm.error();
    products.push_back({gemm->m, gemm->n, gemm->k, gemm->dtype});
  }
  return workload_of(products);
}

constexpr int most_devices_of_auto = 16;  // beyond that `auto` makes a search three to ten times as long: of a GPT-3 block on 256 chips 32 CPU s, not 4

/// As TuningRequest has them.
Expected<std::vector<std::string>> collectives_to_search(const Options& options, int devices) {
  std::vector<std::string> collectives;
  if (!options.given("collectives")) {
    collectives = {"", "ring"};
    if (devices <= most_devices_of_auto) collectives.emplace_back(auto_name);
    return collectives;
  }
  for (const std::string& name : split(options.text("collectives"))) {
    if (name != by_dimension_name && name != auto_name)
      if (const auto known = always(name); !known) return Diagnostic{option("collectives"), known.error().message};
    collectives.push_back(name == by_dimension_name ? "" : name);
  }
  return collectives;
}

}  // namespace

OptionGroup tuning_options() {
  return {
      {"gemm", written_as(Form::gemm, words("m=M,n=N,k=K[,dtype=bf16]")), "products that have nothing to do with each other; repeatable"},
      {"algorithms", written_as(Form::named_texts, word("NAME[,...]", fmt::format("{}", fmt::join(PlanChoices{}.algorithms, ",")))), "which algorithms products may use"},
      {"collectives", no_field(word("NAME[,...]")), "ways to lower the collectives of products: by-dimension, auto, algorithms; left out: by-dimension and ring, up to 16 devices auto too. Of a training step one; left out: as `run` does"},
      {"pass", word("forward|backward|both", "both"), "what is to be fast"},
      {"max-slice-count", word("S", "64"), "the largest slice count looked at"},
      {"block", word("B", "8"), "rows or columns of a slice's interleaved blocks"},
      {"prefetch", word("P", "1"), "slices that run ahead of the matmul"},
      field_option("slice_copies"),
      {"top", word("N", "5"), "meshes whose best plans are wanted", true},
      {"exhaustive", flag(), "simulate every option: the same plans, without trusting the bounds"},
      {"ignore-memory", flag(), "admit plans that need more than the device has"},
      {"explain", flag(), "how the plans spend their time, and what would make the second the first", true},
      {"pareto", word("N"), "up to N plans that trade time for memory"}};
}

Expected<TuningRequest> tuning_request(const Options& options, const Console& console) {
  TuningRequest request;
  auto systems = systems_to_search(options);
  if (!systems) return systems.error();
  request.systems = *std::move(systems);
  request.engine = &des_engine();
  request.algorithms = split(options.text("algorithms"));
  auto collectives = collectives_to_search(options, request.systems.front().mesh.devices());
  if (!collectives) return collectives.error();
  request.collectives = *std::move(collectives);
  RunOptions choosing;
  choosing.threads = 1;
  request.choose_auto = auto_chooser(choosing);
  Fields fields = fields_of(options);
  if (!fields.has("pass")) fields.set("pass", options.text("pass"), option("pass"));
  const auto pass = read_pass(fields);
  if (!pass) return pass.error();
  request.pass = *pass;
  const auto top = options.integer("top", 1, 10000), slices = options.integer("max-slice-count", 1, 4096),
             threads = options.integer("threads", 0, 1024);
  for (const auto* number : {&top, &slices, &threads})
    if (!*number) return number->error();
  request.top = static_cast<std::size_t>(*top);
  request.largest_slice_count = *slices;
  request.threads = static_cast<int>(*threads);
  const Machine& machine = request.systems.front().machine;
  const auto part_options = read_part_options(fields, machine);
  if (!part_options) return part_options.error();
  request.options = *part_options;
  if (!options.flag("ignore-memory")) request.hbm = machine.chip.hbm;
  request.exhaustive = options.flag("exhaustive");
  request.stop = console.interrupted;
  if (console.caller != nullptr) {
    request.share = console.caller->share, request.shares = console.caller->shares;
    request.elsewhere = console.caller->elsewhere;
  }
  auto workload = workload_to_tune(options, request.systems.front().mesh.devices());
  if (!workload) return workload.error();
  request.workload = *std::move(workload);
  return request;
}

SavedPlan saved_plan(const TuningRequest& request, const TunedPlan& plan, const Options& options) {
  const System& system = request.systems[plan.system];
  SavedPlan saved;
  const Fields asked = fields_of(options);
  for (const FieldKind* field : asked.given())
    if (field->part() == FieldKind::Part::system)
      for (const FieldText& given : asked.texts(field->name)) saved.system.add(field->name, given.text, given.where);
  saved.system.set("slice", to_text(system.slice), {});
  saved.system.set("mesh", to_text(system.mesh), {});
  saved.workload = request.workload;
  saved.pass = request.pass;
  saved.plan = plan.plan;
  saved.predicted = to_text(to_seconds(plan.time));
  return saved;
}

}  // namespace podsim

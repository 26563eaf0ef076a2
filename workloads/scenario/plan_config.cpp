#include "workloads/scenario/plan_config.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <memory>

#include "workloads/scenario/plan.pb.h"
#include "workloads/scenario/read_scenario.hpp"
#include "workloads/scenario/scenario_message.hpp"
#include "workloads/transformer_message.hpp"

namespace podsim {

namespace {

constexpr FileFormat plan_format{"a plan", 0, 1};

static_assert(static_cast<int>(ActivationLayout::tokens_by_row) == proto::Plan::tokens_by_row &&
              static_cast<int>(ActivationLayout::features_by_row) == proto::Plan::features_by_row);
static_assert(static_cast<int>(Dataflow::os) == proto::Plan::os && static_cast<int>(Dataflow::ls) == proto::Plan::ls &&
              static_cast<int>(Dataflow::rs) == proto::Plan::rs);
static_assert(static_cast<int>(Pass::forward) == proto::Plan::forward && static_cast<int>(Pass::backward) == proto::Plan::backward &&
              static_cast<int>(Pass::both) == proto::Plan::both);
static_assert(static_cast<int>(Only::everything) == proto::Plan::everything && static_cast<int>(Only::gemm) == proto::Plan::gemm &&
              static_cast<int>(Only::other) == proto::Plan::other);

/// The fields of a scenario that hold for every product of a plan.
constexpr std::array<std::string_view, 5> options_of_products{"pass", "block", "prefetch", "slice_copies", "collectives"};

class PlanReader {
 public:
  explicit PlanReader(const std::string& file) : name_{std::make_shared<const std::string>(file)}, file_{plan_format, file, message_} {}

  Expected<SavedPlan> read(std::string_view text) {
    if (!file_.parse(text)) return file_.error();
    SavedPlan saved;
    const Place scenario = root_.at("scenario");
    const Fields fields = message_.has_scenario() ? read_fields(message_.scenario(), file_, scenario) : old_fields();
    if (message_.has_scenario() && !old_fields().given().empty()) file_.problem(scenario, "expected a scenario or the fields of older plans, found both");
    read_fields_of(fields, saved);
    saved.predicted = message_.predicted();
    read_workload(saved.workload);
    if (file_.ok()) read_stages(saved);
    if (!file_.ok()) return file_.error();
    return saved;
  }

 private:
  /// Those of plans that are older than scenarios.
  Fields old_fields() {
    Fields fields;
    const auto add = [&](const char* name, const char* field, bool given, const std::string& text) {
      if (given) fields.add_value(name, text, file_.where(root_.at(field)));
    };
    add("machine", "machine", message_.has_machine(), message_.machine());
    for (int s = 0; s < message_.set_size(); ++s) fields.add("set", message_.set(s), file_.where(root_.at("set", s)));
    add("slice", "slice", message_.has_slice(), message_.slice());
    add("wrap", "wrap", message_.has_wrap(), message_.wrap());
    add("topology", "topology", message_.has_topology(), message_.topology());
    add("mesh", "mesh", message_.has_mesh(), message_.mesh());
    add("mesh_order", "mesh_order", message_.has_mesh_order(), message_.mesh_order());
    add("pass", "pass", message_.has_pass(), std::string{name_of(static_cast<Pass>(message_.pass()))});
    add("block", "slice_block", message_.has_slice_block(), std::to_string(message_.slice_block()));
    add("prefetch", "prefetch", message_.has_prefetch(), std::to_string(message_.prefetch()));
    add("slice_copies", "slice_copies", message_.has_slice_copies(), message_.slice_copies() ? "on" : "off");
    add("collectives", "collectives", message_.has_collectives(), message_.collectives());
    return fields;
  }

  /// Where the plan runs, and what holds for all of its products.
  void read_fields_of(Fields fields, SavedPlan& saved) {
    for (const FieldKind* field : fields.given()) {
      if (field->part() == FieldKind::Part::system)
        for (const FieldText& given : fields.texts(field->name)) saved.system.add(field->name, given.text, given.where);
      else if (std::find(options_of_products.begin(), options_of_products.end(), field->name) == options_of_products.end())
        file_.problem({fields.where(field->name), std::string{field->name} + " does not belong to a plan"});
    }
    for (const char* needed : {"machine", "slice", "mesh"})
      if (!fields.has(needed)) file_.problem(root_, std::string{needed} + " is missing");
    saved.plan.collectives = fields.has("collectives") ? fields.text("collectives") : std::string{by_dimension_name};
    saved.collectives_where = fields.where("collectives");
    if (!fields.has("pass")) fields.add("pass", "both", {});
    if (!fields.has("slice_copies")) fields.add("slice_copies", "on", {});
    if (const auto pass = read_pass(fields))
      saved.pass = *pass;
    else
      file_.problem(pass.error());
    if (const auto options = read_part_options(fields, {}))
      saved.plan.options = *options;
    else
      file_.problem(options.error());
  }

  void read_workload(Workload& workload) {
    const bool has_block = message_.has_block(), has_products = message_.product_size() > 0;
    if (has_block == has_products) {
      file_.problem(root_, has_block ? "expected a block or products, found both" : "expected a block or products, found neither");
      return;
    }
    if (has_block) {
      const Place place = root_.at("block");
      const TransformerBlock block = read_block(message_.block(), file_, place);
      if (block.batch == 0) file_.problem(place, "the block of a plan says how many sequences there are: batch is missing");
      if (!file_.ok()) return;
      auto of_block = workload_of(block, 1, static_cast<Only>(message_.only()));
      if (of_block)
        workload = *std::move(of_block);
      else
        file_.problem(place, of_block.error().message);
      return;
    }
    std::vector<NamedProduct> products;
    for (int p = 0; p < message_.product_size(); ++p) {
      const auto& product = message_.product(p);
      const Place place = root_.at("product", p);
      const auto extent = [&](const char* field, std::int64_t value) -> std::int64_t {
        if (value >= 1 && value <= std::int64_t{1} << 40) return value;
        file_.problem(place.at(field), fmt::format("expected a whole number from 1 to 2^40, found {}", value));
        return 1;
      };
      const auto dtype = dtype_named(product.dtype());
      if (!dtype || !is_product_dtype(*dtype))
        file_.problem(place.at("dtype"), fmt::format("expected {}, found {}", product_dtype_names(), quoted(product.dtype())));
      products.push_back({extent("m", product.m()), extent("n", product.n()), extent("k", product.k()), dtype.value_or(DType::bf16)});
    }
    auto of_products = workload_of(products);
    if (of_products)
      workload = *std::move(of_products);
    else
      file_.problem(root_.at("product", 0), of_products.error().message);
  }

  void read_stages(SavedPlan& saved) {
    const std::vector<Stage>& stages = saved.workload.stages;
    if (static_cast<std::size_t>(message_.stage_size()) != stages.size()) {
      file_.problem(root_, fmt::format("expected the {} stages of {}, found {}", stages.size(), saved.workload.name, message_.stage_size()));
      return;
    }
    for (int s = 0; s < message_.stage_size(); ++s) {
      const auto& message = message_.stage(s);
      const Stage& stage = stages[static_cast<std::size_t>(s)];
      const Place place = root_.at("stage", s), name = place.at("name");
      if (message.name() != stage.name) file_.problem(name, fmt::format("expected {}, found {}", quoted(stage.name), quoted(message.name())));
      const SourceLocation where = file_.where(place);
      StagePlan plan{stage.name, static_cast<ActivationLayout>(message.layout()), {}, {name_, where.line, where.column}};
      const bool has_choice = message.has_algorithm() || message.has_dataflow() || message.has_transposed() || message.has_slice_count() || message.has_collectives();
      if (stage.kind == Stage::Kind::product)
        plan.product = read_choice(message, place, plan.layout);
      else if (has_choice)
        file_.problem(place, stage.name + " is no product: it has a layout and nothing else");
      saved.plan.stages.push_back(std::move(plan));
    }
  }

  ProductChoice read_choice(const proto::Plan::Stage& message, const Place& place, ActivationLayout layout) {
    if (!message.has_algorithm() || !message.has_dataflow()) file_.problem(place, "a product needs an algorithm and a dataflow");
    ProductChoice choice{message.algorithm(), static_cast<Dataflow>(message.dataflow()), message.transposed(), message.slice_count(), message.collectives()};
    const Place algorithm = place.at("algorithm"), slices = place.at("slice_count"), collectives = place.at("collectives"), at = place.at("layout");
    if (const auto entry = gemm_algorithm(choice.algorithm); !entry)
      file_.problem(algorithm, entry.error().message);
    else if ((*entry)->needs_slice_count && !message.has_slice_count())
      file_.problem(place, choice.algorithm + " needs a slice_count");
    if (choice.slice_count < 0 || choice.slice_count > 1 << 20)
      file_.problem(slices, fmt::format("expected a whole number from 0 to {}, found {}", 1 << 20, choice.slice_count));
    if (message.has_collectives() && choice.collectives != auto_name)
      if (const auto known = always(choice.collectives); !known) file_.problem(collectives, known.error().message);
    if (input_layout(choice.dataflow, choice.transposed) != layout)
      file_.problem(at, fmt::format("{}{} reads {}, found {}", choice.transposed ? "transposed " : "", name_of(choice.dataflow),
                                    name_of(other(layout)), name_of(layout)));
    return choice;
  }

  std::shared_ptr<const std::string> name_;
  proto::Plan message_;
  MessageFile file_;
  Place root_;
};

}  // namespace

Expected<SavedPlan> read_plan(std::string_view text, const std::string& file) { return PlanReader{file}.read(text); }

std::string write_plan(const SavedPlan& saved) {
  proto::Plan message;
  message.set_format_version(plan_format.version);
  Fields fields = saved.system;
  const auto add = [&](const char* name, const std::string& text) { fields.add(name, text, {}); };
  add("pass", std::string{name_of(saved.pass)});
  add("block", std::to_string(saved.plan.options.block));
  add("prefetch", std::to_string(saved.plan.options.prefetch));
  add("slice_copies", saved.plan.options.slice_copies ? "on" : "off");
  add("collectives", saved.plan.collectives);
  write_fields(fields, *message.mutable_scenario());
  if (saved.workload.block)
    write_block(*saved.workload.block, *message.mutable_block());
  else
    for (const Stage& stage : saved.workload.stages) {
      auto* product = message.add_product();
      product->set_m(stage.tokens);
      product->set_n(stage.outputs);
      product->set_k(stage.inputs);
      if (saved.workload.dtype != DType::bf16) product->set_dtype(std::string{name_of(saved.workload.dtype)});
    }
  if (saved.workload.only != Only::everything) message.set_only(static_cast<proto::Plan::Only>(saved.workload.only));
  for (const StagePlan& stage : saved.plan.stages) {
    auto* out = message.add_stage();
    out->set_name(stage.name);
    out->set_layout(static_cast<proto::Plan::Layout>(stage.layout));
    if (!stage.product) continue;
    out->set_algorithm(stage.product->algorithm);
    out->set_dataflow(static_cast<proto::Plan::Dataflow>(stage.product->dataflow));
    if (stage.product->transposed) out->set_transposed(true);
    if (stage.product->slice_count != 0) out->set_slice_count(stage.product->slice_count);
    if (!stage.product->collectives.empty()) out->set_collectives(stage.product->collectives);
  }
  if (!saved.predicted.empty()) message.set_predicted(saved.predicted);
  return to_textproto(message);
}

}  // namespace podsim

#include "workloads/plan_config.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "workloads/plan.pb.h"
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

class PlanReader {
 public:
  explicit PlanReader(const std::string& file) : name_{std::make_shared<const std::string>(file)}, file_{plan_format, file, message_} {}

  Expected<SavedPlan> read(std::string_view text) {
    if (!file_.parse(text)) return file_.error();
    SavedPlan saved;
    saved.machine = message_.machine();
    saved.sets.assign(message_.set().begin(), message_.set().end());
    saved.slice = message_.slice();
    saved.wrap = message_.wrap();
    saved.topology = message_.topology();
    saved.mesh = message_.mesh();
    saved.mesh_order = message_.mesh_order();
    saved.pass = static_cast<Pass>(message_.pass());
    saved.predicted = message_.predicted();
    for (const char* field : {"machine", "slice", "wrap", "topology", "mesh", "mesh_order", "collectives"})
      saved.places[field] = file_.where(root_.at(field));
    for (int s = 0; s < message_.set_size(); ++s) saved.places[fmt::format("set {}", s)] = file_.where(root_.at("set", s));
    read_workload(saved.workload);
    PartOptions& options = saved.plan.options;
    options.block = in_range("slice_block", message_.slice_block(), 1, 1 << 20);
    options.prefetch = static_cast<int>(in_range("prefetch", message_.prefetch(), 0, 1024));
    options.slice_copies = message_.slice_copies();
    saved.plan.collectives = message_.collectives();
    if (file_.ok()) read_stages(saved);
    if (!file_.ok()) return file_.error();
    return saved;
  }

 private:
  std::int64_t in_range(const char* field, std::int64_t value, std::int64_t low, std::int64_t high) {
    if (value >= low && value <= high) return value;
    file_.problem(root_.at(field), fmt::format("expected a whole number from {} to {}, found {}", low, high, value));
    return low;
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
      if (!dtype) file_.problem(place.at("dtype"), "expected bf16 or f32, found " + quoted(product.dtype()));
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
      const bool has_choice = message.has_algorithm() || message.has_dataflow() || message.has_transposed() || message.has_slice_count();
      if (stage.kind == Stage::Kind::product)
        plan.product = read_choice(message, place, plan.layout);
      else if (has_choice)
        file_.problem(place, stage.name + " is no product: it has a layout and nothing else");
      saved.plan.stages.push_back(std::move(plan));
    }
  }

  ProductChoice read_choice(const proto::Plan::Stage& message, const Place& place, ActivationLayout layout) {
    if (!message.has_algorithm() || !message.has_dataflow()) file_.problem(place, "a product needs an algorithm and a dataflow");
    ProductChoice choice{message.algorithm(), static_cast<Dataflow>(message.dataflow()), message.transposed(), message.slice_count()};
    const Place algorithm = place.at("algorithm"), slices = place.at("slice_count"), at = place.at("layout");
    if (const auto entry = gemm_algorithm(choice.algorithm); !entry)
      file_.problem(algorithm, entry.error().message);
    else if ((*entry)->needs_slice_count && !message.has_slice_count())
      file_.problem(place, choice.algorithm + " needs a slice_count");
    if (choice.slice_count < 0 || choice.slice_count > 1 << 20)
      file_.problem(slices, fmt::format("expected a whole number from 0 to {}, found {}", 1 << 20, choice.slice_count));
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
  message.set_machine(saved.machine);
  for (const std::string& set : saved.sets) message.add_set(set);
  message.set_slice(saved.slice);
  if (saved.wrap != "auto") message.set_wrap(saved.wrap);
  if (!saved.topology.empty()) message.set_topology(saved.topology);
  message.set_mesh(saved.mesh);
  if (saved.mesh_order != "row-major") message.set_mesh_order(saved.mesh_order);
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
  message.set_pass(static_cast<proto::Plan::Pass>(saved.pass));
  message.set_slice_block(saved.plan.options.block);
  message.set_prefetch(saved.plan.options.prefetch);
  message.set_slice_copies(saved.plan.options.slice_copies);
  message.set_collectives(saved.plan.collectives);
  for (const StagePlan& stage : saved.plan.stages) {
    auto* out = message.add_stage();
    out->set_name(stage.name);
    out->set_layout(static_cast<proto::Plan::Layout>(stage.layout));
    if (!stage.product) continue;
    out->set_algorithm(stage.product->algorithm);
    out->set_dataflow(static_cast<proto::Plan::Dataflow>(stage.product->dataflow));
    if (stage.product->transposed) out->set_transposed(true);
    if (stage.product->slice_count != 0) out->set_slice_count(stage.product->slice_count);
  }
  if (!saved.predicted.empty()) message.set_predicted(saved.predicted);
  return to_textproto(message);
}

}  // namespace podsim

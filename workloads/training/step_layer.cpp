#include "workloads/training/step_layer.hpp"

#include <algorithm>
#include <cstddef>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace podsim {

namespace {

using Part = StepParameter::Part;
using Use = StepParameter::Use;
using Inserted = FunctionWriter::Inserted;
using Weights = std::vector<const StepWeight*>;

std::string host_name(const std::string& tensor) { return tensor + ".host"; }

bool writes(const Op& op, BufferId buffer) {
  const auto is = [&](const Region& region) { return region.buffer == buffer; };
  if (const auto* matmul = std::get_if<Matmul>(&op)) return is(matmul->out);
  if (const auto* shift = std::get_if<Shift>(&op)) return is(shift->target);
  if (const auto* collective = std::get_if<Collective>(&op)) return is(collective->output);
  const auto* local = std::get_if<Local>(&op);
  return local != nullptr && std::any_of(local->writes.begin(), local->writes.end(), is);
}

struct Offloaded {
  const Buffer* parameter = nullptr;
  Region made;
  Tasks writers{};
};

/// Hands what the tasks from `first` on made to the host, each as soon as it is complete, one copy after the other.
void write_to_host(FunctionWriter& w, std::vector<Offloaded> offloaded, std::size_t first) {
  for (Offloaded& each : offloaded)
    for (std::size_t t = first; t < w.builder().task_count(); ++t)
      if (writes(w.builder().task(TaskId{t}).op, each.made.buffer)) each.writers.push_back(TaskId{t});
  std::ranges::sort(offloaded, {}, [](const Offloaded& each) { return each.writers.back(); });
  Edges queue;
  for (const auto& [parameter, made, writers] : offloaded) {
    const Region there = w.tensor({Use::kept, nullptr, Part::work, host_name(parameter->tensor)}, parameter->extents, parameter->dtype, Role::output, true);
    queue = w.local("offload " + parameter->tensor, {LocalKind::to_host, {made}, {there}, 1, Unit::dma}, join(edges_to(writers), queue));
  }
}

/// The tasks that need a weight, by position: those that name it, and those that name what others than products make of it, as a gather along rows.
std::vector<std::size_t> uses_of(const TensorFunction& function, std::size_t parameter) {
  const std::vector<Task>& tasks = function.function.body.tasks;
  std::set<BufferId> held{BufferId{parameter}};
  std::vector<std::size_t> uses;
  for (std::size_t t = 0; t < tasks.size(); ++t) {
    Op op = tasks[t].op;
    const std::vector<Region*> regions = regions_of(op);
    if (std::ranges::none_of(regions, [&](const Region* region) { return held.contains(region->buffer); })) continue;
    uses.push_back(t);
    if (!std::holds_alternative<Matmul>(op))
      for (const Region* region : regions) held.insert(region->buffer);
  }
  return uses;
}

/// Writes one work of a layer.
class LayerWork {
 public:
  LayerWork(FunctionWriter& w, WeightTransfers& transfers, const StepCall& call)
      : w_{w}, transfers_{transfers}, call_{call}, parts_{w.parts()}, function_{*parts_.layer_function(call.work)}, read_{parts_.reads(call.work)}, made_{parts_.makes(call.work)} {
    for (std::size_t p = 0; p < function_.parameters.size(); ++p) give(p);
    // After the others, so that parameters are in the order of a pass without a host.
    for (const Buffer* parameter : kept_) {
      const bool came_back = parameter->role == Role::input && parts_.is_on_host(parameter->tensor);
      given_[parameter->tensor] = w_.tensor({came_back ? Use::retrieved : Use::kept, nullptr, Part::work, parameter->tensor}, parameter->extents, parameter->dtype, parameter->role);
    }
  }

  void write() {
    insert_gathers();
    insert_reduction_of_call_before();
    insert_gathers_for_next();
    insert_reductions();
    std::ranges::stable_sort(inserted_, {}, &Inserted::behind);
    const std::size_t first = w_.builder().task_count();
    w_.append(function_, given_, inserted_);
    write_to_host(w_, std::move(offloaded_), first);
  }

 private:
  using Users = std::map<const StepWeight*, std::vector<std::size_t>>;

  void give(std::size_t p) {
    const Buffer& parameter = function_.parameters[p];
    const LayerTensor& tensor = parts_.functions.tensors.at(parameter.tensor);
    const StepWeight* const weight = tensor.use == LayerTensor::Use::kept || tensor.stage.empty() ? nullptr : &*std::ranges::find(parts_.layer_weights, tensor.stage, &StepWeight::name);
    Region& region = given_[parameter.tensor];
    switch (tensor.use) {
      case LayerTensor::Use::weight:
        region = gathers(weight) ? w_.scratch("gathered " + weight->name, weight->block()) : w_.reads({Use::weight, weight}, weight->block());
        readers_[weight] = users_of(function_, p), uses_[weight] = uses_of(function_, p), blocks_[weight] = region;
        return;
      case LayerTensor::Use::weight_gradient:
        region = reduces(weight) ? w_.scratch("whole d " + weight->name, weight->block()) : w_.makes({Use::weight_gradient, weight}, weight->block());
        makers_[weight] = users_of(function_, p), gradients_[weight] = region;
        return;
      case LayerTensor::Use::input: region = w_.reads({Use::input}, parts_.activation()); return;
      case LayerTensor::Use::output: region = w_.makes({Use::output}, parts_.activation()); return;
      case LayerTensor::Use::output_gradient: region = w_.reads({Use::output_gradient}, parts_.activation()); return;
      case LayerTensor::Use::input_gradient: region = w_.makes({Use::input_gradient}, parts_.activation()); return;
      case LayerTensor::Use::kept:
        if (parameter.role == Role::output && parts_.is_on_host(parameter.tensor))
          region = w_.scratch(parameter.tensor, parameter.extents, parameter.dtype), offloaded_.push_back({&parameter, region});
        else
          kept_.push_back(&parameter);
    }
  }

  /// Whether the call gathers a weight, or reduces a gradient, itself.
  [[nodiscard]] bool gathers(const StepWeight* weight) const { return !call_.alone && parts_.is_fetched(*weight) && weight != read_.front(); }
  [[nodiscard]] bool reduces(const StepWeight* weight) const { return !call_.alone && weight != made_.back(); }

  /// A reduction, for which nothing waits, begins with the next product or attention: beside norms and activations, which memory bounds, it would slow these
  /// down. Gathers, which work waits for, begin as soon as they may. Chosen of three ways (both, neither, this) after their errors on the rows of
  /// validation/datasets/tpu_v5e_training, of whose steps they change 1.2 % at most; no measurement tells when XLA begins them.
  void begin_with_arithmetic(Inserted& reduction) const {
    const std::vector<Task>& tasks = function_.function.body.tasks;
    std::optional<std::size_t> before;  // on the core, which takes its tasks in this order
    for (std::size_t t = reduction.behind; t < tasks.size(); ++t) {
      const auto* local = std::get_if<Local>(&tasks[t].op);
      const bool is_product = std::holds_alternative<Matmul>(tasks[t].op);
      if (is_product || (local != nullptr && (local->kind == LocalKind::attention || local->kind == LocalKind::attention_grad))) {
        if (before) reduction.after.push_back(*before), reduction.behind = t;
        return;
      }
      if (local != nullptr && local->unit == Unit::core) before = t;
    }
  }

  /// One weight ahead of the work: from when the one before the previous one has been used for the first time.
  void insert_gathers() {
    for (std::size_t i = 1; i < read_.size() && gathers(read_[i]); ++i) {
      Inserted gather{0, {}, {}, readers_.at(read_[i])};
      if (i > 1)
        for (const std::size_t task : uses_.at(read_[i - 2]))
          if (task < readers_.at(read_[i - 1]).front()) gather.after.push_back(task), gather.behind = task + 1;
      gather.write = [this, weight = read_[i]](const Edges& after) {
        return transfers_.gather(*weight, w_.reads({Use::shard, weight}, weight->shard(), w_.model().weights), blocks_.at(weight), after);
      };
      inserted_.push_back(std::move(gather));
    }
  }

  /// Behind the first gather, which the work waits for sooner.
  void insert_reduction_of_call_before() {
    if (call_.reduce == StepWork::nothing) return;
    Inserted reduction{0, {}, [this](const Edges&) { return transfers_.reduce(call_), Edges{}; }, {}};
    inserted_.insert(inserted_.begin() + (inserted_.empty() ? 0 : 1), std::move(reduction));
  }

  /// A layer's: when all weights but one have been used for the last time. The weights of an end of the model take longer than the last product may, and
  /// their own call needs more memory than this one: behind the gathers of this call.
  void insert_gathers_for_next() {
    if (call_.fetch == StepWork::nothing) return;
    Inserted gather{inserted_.empty() ? 0 : inserted_.back().behind, {}, [this](const Edges& after) { return transfers_.fetch(call_.fetch, after), Edges{}; }, {}};
    if (group_of(call_.fetch) == WeightGroup::layer && read_.size() > 1) {
      Weights last = read_;
      std::ranges::sort(last, {}, [&](const StepWeight* weight) { return uses_.at(weight).back(); });
      gather.after = uses_.at(last[last.size() - 2]);
      gather.behind = gather.after.back() + 1;
    }
    inserted_.push_back(std::move(gather));
  }

  void insert_reductions() {
    for (const StepWeight* weight : made_) {
      if (!reduces(weight)) continue;
      const std::vector<std::size_t>& makers = makers_.at(weight);
      const Region sum = w_.makes({Use::gradient, weight}, weight->shard(), w_.model().gradients);
      Inserted reduction{makers.back() + 1, makers, {}, {}};
      reduction.write = [this, weight, sum](const Edges& made) { return transfers_.reduce(WeightGroup::layer, *weight, gradients_.at(weight), sum, call_.first_own, made), Edges{}; };
      if (!weight->gathered.empty()) begin_with_arithmetic(reduction);
      inserted_.push_back(std::move(reduction));
    }
  }

  FunctionWriter& w_;
  WeightTransfers& transfers_;
  const StepCall& call_;
  const StepParts& parts_;
  const TensorFunction& function_;
  Weights read_, made_;
  Users readers_, uses_, makers_;
  std::map<const StepWeight*, Region> blocks_, gradients_;
  std::map<std::string, Region> given_;
  std::vector<Offloaded> offloaded_;
  std::vector<const Buffer*> kept_;
  std::vector<Inserted> inserted_;
};

}  // namespace

void write_layer(FunctionWriter& w, WeightTransfers& transfers, const StepCall& call) { LayerWork{w, transfers, call}.write(); }

void write_retrieval(FunctionWriter& w, StepWork work) {
  Edges queue;
  for (const Buffer& kept : w.parts().retrieved(work)) {
    const Region there = w.tensor({Use::kept, nullptr, Part::retrieve, host_name(kept.tensor)}, kept.extents, kept.dtype, Role::input, true);
    const Region here = w.makes({Use::retrieved, nullptr, Part::retrieve, kept.tensor}, kept.extents, kept.dtype);
    queue = w.local("retrieve " + kept.tensor, {LocalKind::from_host, {there}, {here}, 1, Unit::dma}, queue);
  }
}

}  // namespace podsim

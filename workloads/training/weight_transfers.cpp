#include "workloads/training/weight_transfers.hpp"

#include <utility>

namespace podsim {

namespace {

using Part = StepParameter::Part;
using Use = StepParameter::Use;

}  // namespace

Edges WeightTransfers::gather(const StepWeight& weight, Region shard, const Region& block, const Edges& after) {
  const bool is_converted = w_.model().weights != w_.model().activations;
  Edges ready = after;
  if (is_converted) {
    const Region converted = weight.gathered.empty() ? block : w_.scratch("converted " + weight.name, weight.shard());
    ready = w_.local("convert " + weight.name, {LocalKind::convert, {shard}, {converted}}, after);
    shard = converted;
  }
  if (!weight.gathered.empty()) return queue_ = w_.collective("gather " + weight.name, CollectiveKind::all_gather, weight.gathered, shard, block, weight.dim, join(queue_, ready));
  return is_converted ? ready : Edges{Edge{w_.builder().alias("place " + weight.name, shard, block, ready)}};
}

void WeightTransfers::fetch(StepWork work, const Edges& after) {
  for (const StepWeight* weight : w_.parts().reads_first(work)) {
    const Region shard = w_.reads({Use::shard, weight, Part::fetch}, weight->shard(), w_.model().weights), block = w_.makes({Use::weight, weight, Part::fetch}, weight->block());
    gather(*weight, shard, block, after);
  }
}

void WeightTransfers::reduce(WeightGroup of, const StepWeight& weight, const Region& gradient, const Region& sum, bool first, const Edges& made) {
  if (weight.gathered.empty()) return write({of, weight.name, gradient, sum, first, made});
  const Region shard = w_.scratch("d " + weight.name, weight.shard());
  queue_ = w_.collective("scatter d " + weight.name, CollectiveKind::reduce_scatter, weight.gathered, gradient, shard, weight.dim, join(queue_, made));
  sums_.push_back({of, weight.name, shard, sum, first, queue_});
}

void WeightTransfers::reduce(const StepCall& call) {
  for (const StepWeight* weight : w_.parts().makes_last(call.reduce)) {
    const Region gradient = w_.reads({Use::weight_gradient, weight, Part::reduce}, weight->block()), sum = w_.makes({Use::gradient, weight, Part::reduce}, weight->shard(), w_.model().gradients);
    reduce(group_of(call.reduce), *weight, gradient, sum, weight->name == positions_weight ? call.first_positions : call.first, {});
  }
}

void WeightTransfers::finish() {
  for (const Sum& sum : std::exchange(sums_, {})) write(sum);
}

/// Sums of layers in a loop are one array: a copy more.
void WeightTransfers::write(const Sum& of) {
  const bool stacked = of.of == WeightGroup::layer && w_.parts().step.scan && w_.parts().step.model.layers > 1;
  const DType from = w_.builder().buffer(of.gradient.buffer).dtype, to = w_.model().gradients;
  Region gradient = of.gradient;
  Edges after = of.ready;
  if (from != to) {
    const Region wide = of.first && !stacked ? of.sum : w_.scratch("converted d " + of.name, lengths_of(gradient), to);
    after = w_.local("convert d " + of.name, {LocalKind::convert, {gradient}, {wide}}, after);
    gradient = wide;
  }
  if (of.first && stacked)
    w_.local("stack d " + of.name, {LocalKind::stack, {gradient}, {of.sum}}, after);
  else if (!of.first)
    w_.local("add d " + of.name, {LocalKind::add, {of.sum, gradient}, {of.sum}}, after);
  else if (gradient != of.sum)
    w_.builder().alias("place d " + of.name, gradient, of.sum, after);
}

}  // namespace podsim

#include "workloads/scenario/training_costs.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace podsim {

namespace {

Bytes share_of(Bytes all, std::int64_t part, std::int64_t of) { return Bytes{all.count() / of * part}; }

}  // namespace

/// Finds what the looks need and nobody has found, in parallel; each once.
template <class Map, class Find>
void TrainingCosts::complete(Map& known, const std::vector<TrainingLook>& looks, const std::vector<Keys>& keys, std::string Keys::*key,
                             const Find& find) {
  std::vector<std::pair<std::size_t, typename Map::mapped_type*>> missing;
  for (std::size_t i = 0; i < looks.size(); ++i) {
    if (looks[i].problem) continue;
    const auto [entry, added] = known.try_emplace(keys[i].*key);
    if (added) missing.emplace_back(i, &entry->second);
  }
  pool_.for_each(missing.size(), [&](std::size_t m, std::size_t) {
    if (!options_.stopped()) find(missing[m].first, *missing[m].second);
  });
}

TrainingCosts::KnownLayer TrainingCosts::find_layer(std::size_t system, const TrainingStep& given, const TrainingStep& divided) const {
  TrainingSpec spec = request_.spec;
  spec.step = given;
  auto planned = choose_layers(request_.systems[system], spec, options_);
  if (!planned) return {{}, {}, planned.error()};
  KnownLayer layer{std::move(planned->plan), {}};
  const auto parts = step_parts(divided, request_.systems[system].mesh, layer.plan, spec.options.optimiser);
  if (!parts)
    layer.problem = parts.error();
  else if (auto ok = add_layer(request_.systems[system], *parts, spec.collectives, options_, layer.times); !ok)
    layer.problem = ok.error();
  return layer;
}

std::vector<TrainingCosts::Keys> TrainingCosts::prepare(std::vector<TrainingLook>& looks, const TrainingSpace& space) {
  std::vector<Keys> keys;
  for (TrainingLook& look : looks) {
    const System& system = request_.systems[look.system];
    look.divided = divided(look.given)->step;
    const TrainingStep& step = look.divided;
    Keys own{rings_key(system, look.system, step),
             layer_key(system, look.system, step),
             weight_key(system, look.system, step),
             fmt::format("{} {} {} {}", step.pipeline, step.mesh.stage, step.virtual_stages, step.microbatches),
             {}};
    own.kept = own.rings + to_text(step.remat);
    keys.push_back(std::move(own));
  }
  // The layer of most sequences, which the layers_ may have too.
  complete(seeds_, looks, keys, &Keys::rings, [&](std::size_t i, Seed& seed) {
    const TrainingLook& look = looks[i];
    TrainingStep given = look.rings ? space.largest[*look.rings] : look.given;
    const std::size_t system = look.rings ? space.largest_systems[*look.rings] : look.system;
    given.remat = {};
    const TrainingStep step = divided(given)->step;
    seed.sequences = sequences_of(step);
    seed.layer = find_layer(system, given, step);
    if (seed.layer.problem) return;
    const auto parts = step_parts(step, request_.systems[system].mesh, seed.layer.plan, request_.spec.options.optimiser);
    auto ok = add_ends(request_.systems[system], *parts, request_.spec.collectives, options_, seed.layer.times);
    if (ok) ok = add_halves(request_.systems[system], *parts, request_.spec.collectives, options_, seed.layer.times);
    if (!ok) seed.layer.problem = ok.error();
  });
  for (std::size_t i = 0; i < looks.size(); ++i)
    if (!looks[i].problem) looks[i].problem = seeds_.at(keys[i].rings).layer.problem;
  complete(kept_, looks, keys, &Keys::kept, [&](std::size_t i, KnownLayer& kept) {
    const Seed& seed = seeds_.at(keys[i].rings);
    TrainingStep step = looks[i].divided;  // what layers keep does not depend on the rest of the step
    const auto parts = step_parts(step, request_.systems[looks[i].system].mesh, seed.layer.plan, request_.spec.options.optimiser);
    if (!parts) {
      kept.problem = parts.error();
      return;
    }
    add_kept(*parts, kept.times);
    const std::int64_t own = sequences_of(step);  // of one sequence
    kept.times.kept = share_of(kept.times.kept, 1, own), kept.times.kept_for_weights = share_of(kept.times.kept_for_weights, 1, own);
  });
  complete(weights_, looks, keys, &Keys::weights, [&](std::size_t i, Known<WeightTimes>& known) {
    const TrainingLook& look = looks[i];
    const Seed& seed = seeds_.at(keys[i].rings);
    const auto parts = step_parts(look.divided, request_.systems[look.system].mesh, seed.layer.plan, request_.spec.options.optimiser);
    const auto times = parts ? weight_times(request_.systems[look.system], *parts, request_.spec.collectives, options_) : parts.error();
    if (times)
      known.value = *times;
    else
      known.problem = times.error();
  });
  complete(shapes_, looks, keys, &Keys::shape, [&](std::size_t i, Known<std::shared_ptr<const PipelineShape>>& known) {
    auto shape = pipeline_shape(looks[i].divided, request_.spec.options.fuse_steady_state);
    if (shape)
      known.value = *std::move(shape);
    else
      known.problem = shape.error();
  });
  for (std::size_t i = 0; i < looks.size(); ++i) {
    if (looks[i].problem || options_.stopped()) continue;
    for (const std::optional<Diagnostic>& problem :
         {kept_.at(keys[i].kept).problem, weights_.at(keys[i].weights).problem, shapes_.at(keys[i].shape).problem})
      if (problem && !looks[i].problem) looks[i].problem = problem;
  }
  simulated_ = static_cast<std::int64_t>(seeds_.size() + layers_.size() + weights_.size());
  return keys;
}

LayerTimes TrainingCosts::least_times(const TrainingLook& look, const Keys& keys) const {
  const Seed& seed = seeds_.at(keys.rings);
  const std::int64_t sequences = sequences_of(look.divided);
  const double share = static_cast<double>(sequences) / static_cast<double>(seed.sequences);
  LayerTimes times = seed.layer.times;
  for (double LayerTimes::*member : {&LayerTimes::forward, &LayerTimes::backward, &LayerTimes::inputs, &LayerTimes::weights, &LayerTimes::embed,
                                     &LayerTimes::loss, &LayerTimes::embed_gradient})
    times.*member *= share;
  const LayerTimes& kept = kept_.at(keys.kept).times;
  for (std::size_t LayerTimes::*member : {&LayerTimes::forward_first, &LayerTimes::backward_first, &LayerTimes::inputs_first, &LayerTimes::forward_last, &LayerTimes::made_last})
    times.*member = kept.*member;
  times.kept = sequences * kept.kept, times.kept_for_weights = sequences * kept.kept_for_weights;
  return times;
}

void TrainingCosts::bound_quickly(std::vector<TrainingLook>& looks, const TrainingSpace& space) {
  const std::vector<Keys> keys = prepare(looks, space);
  pool_.for_each(looks.size(), [&](std::size_t i, std::size_t) {
    TrainingLook& look = looks[i];
    if (look.problem || options_.stopped()) return;
    LayerTimes times = least_times(look, keys[i]);
    const double arithmetic =
        arithmetic_times(look.divided, request_.systems[look.system].machine).backward / static_cast<double>(look.divided.layers_per_stage());
    times.backward = std::max(times.backward, arithmetic);
    times.inputs = std::max(times.inputs, arithmetic - times.weights);
    look.bound = quick_bound(look.divided, *shapes_.at(keys[i].shape).value, times, weights_.at(keys[i].weights).value);
  });
}

void TrainingCosts::bound_sharply(std::vector<TrainingLook>& looks, const TrainingSpace& space) {
  const std::vector<Keys> keys = prepare(looks, space);
  complete(layers_, looks, keys, &Keys::layer,
           [&](std::size_t i, KnownLayer& known) { known = find_layer(looks[i].system, looks[i].given, looks[i].divided); });
  for (std::size_t i = 0; i < looks.size(); ++i)
    if (!looks[i].problem) looks[i].problem = layers_.at(keys[i].layer).problem;
  std::vector<TrainingLook> split = looks;
  for (TrainingLook& look : split)
    if (!splits_backward(look.divided) && !look.problem) look.problem = Diagnostic{};
  complete(halves_, split, keys, &Keys::layer, [&](std::size_t i, KnownLayer& known) {
    const TrainingLook& look = looks[i];
    const System& system = request_.systems[look.system];
    const auto parts = step_parts(look.divided, system.mesh, layers_.at(keys[i].layer).plan, request_.spec.options.optimiser);
    if (auto ok = parts ? add_halves(system, *parts, request_.spec.collectives, options_, known.times) : Status{parts.error()}; !ok)
      known.problem = ok.error();
  });
  simulated_ = static_cast<std::int64_t>(seeds_.size() + layers_.size() + weights_.size());
  pool_.for_each(looks.size(), [&](std::size_t i, std::size_t) {
    TrainingLook& look = looks[i];
    if (look.problem || options_.stopped()) return;
    LayerTimes times = least_times(look, keys[i]);
    const LayerTimes& own = layers_.at(keys[i].layer).times;
    times.forward = own.forward, times.backward = own.backward;
    if (splits_backward(look.divided)) {
      const KnownLayer& halves = halves_.at(keys[i].layer);
      times.inputs = halves.times.inputs, times.weights = halves.times.weights;
      look.problem = halves.problem;
      if (look.problem) return;
    }
    look.bound = step_bound(look.divided, *shapes_.at(keys[i].shape).value, times, weights_.at(keys[i].weights).value);
  });
}

}  // namespace podsim

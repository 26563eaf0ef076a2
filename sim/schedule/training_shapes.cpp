// Shape rules of losses and optimisers.
#include <fmt/format.h>

#include <cmath>

#include "sim/schedule/local_shapes.hpp"
#include "sim/schedule/schedule.hpp"

namespace podsim::shapes {

namespace {

constexpr unsigned only_f32 = 1U << static_cast<int>(DType::f32), only_s32 = 1U << static_cast<int>(DType::s32);

void same_count(OperandCheck& check, const Region& a, const Region& b, std::string_view a_name, std::string_view b_name) {
  if (elements_of(a) != elements_of(b)) check.problem(fmt::format("{} has {} elements, {} has {}", a_name, elements_of(a), b_name, elements_of(b)));
}

void mean_over(const Local& local, OperandCheck& check) {
  if (!std::isfinite(local.factor) || local.factor <= 0) check.problem(fmt::format("a mean over {}; expected a positive number", local.factor));
}

void one_loss(const Local& local, OperandCheck& check) {
  const Region& loss = local.writes.front();
  if (elements_of(loss) != 1) check.problem(fmt::format("the loss has {} elements; expected 1", elements_of(loss)));
  check.dtype_among(loss, only_f32, "the loss");
}

struct LogitExtents {
  std::int64_t tokens = 0, classes = 0;
};

/// False: nothing else can be compared with the logits.
bool logits_of_tokens(const Local& local, OperandCheck& check, LogitExtents& extents) {
  const Region& logits = local.reads.front();
  check.dtype_among(logits, dtypes::real, "a logit");
  if (logits.dims.size() != 2) {
    check.problem(
        fmt::format("the logits are {}; expected {}", lengths_text(logits), local.features_first ? "[classes,tokens]" : "[tokens,classes]"));
    return false;
  }
  extents = {logits.dims[local.features_first ? 1 : 0].length, logits.dims[local.features_first ? 0 : 1].length};
  if (!is_count(static_cast<double>(local.classes)))
    check.problem(fmt::format("{} classes; expected a whole number between 1 and 2^31", local.classes));
  return numberings_fit(local, check, 1);
}

/// Of each token the two numbers of each of some devices: [tokens, 2], or with a first dimension of devices.
void statistics_of(OperandCheck& check, const Region& statistics, const LogitExtents& logits, bool of_all_devices) {
  const std::size_t rank = statistics.dims.size();
  const bool fits = (rank == 2 || rank == 3) && statistics.dims[rank - 1].length == 2 && statistics.dims[rank - 2].length == logits.tokens &&
                    (rank == 2 || of_all_devices || statistics.dims[0].length == 1);
  if (!fits)
    check.problem(fmt::format("the statistics are {}; expected [{}{},2]", lengths_text(statistics), of_all_devices ? "devices," : "", logits.tokens));
  check.dtype_among(statistics, only_f32, "a statistic");
}

bool targets_of_tokens(const Local& local, OperandCheck& check) {
  LogitExtents extents;
  if (!logits_of_tokens(local, check, extents)) return false;
  const Region &statistics = local.reads[1], &targets = local.reads[2];
  statistics_of(check, statistics, extents, true);
  const std::int64_t devices = statistics.dims.size() == 3 ? statistics.dims[0].length : 1;
  if (extents.classes < (local.classes + devices - 1) / devices)
    check.problem(fmt::format("{} classes on {} devices with {} each; expected as many on all of them", local.classes, devices, extents.classes));
  if (elements_of(targets) != extents.tokens) check.problem(fmt::format("{} targets of {} tokens", elements_of(targets), extents.tokens));
  check.dtype_among(targets, only_s32, "a target");
  mean_over(local, check);
  return true;
}

void parameters_and_gradient(const Local& local, OperandCheck& check) {
  const Region &parameters = local.reads[0], &gradient = local.reads[1];
  same_count(check, gradient, parameters, "the gradient", "the array of parameters");
  check.pair(local.writes[0], parameters, "the result", "the array of parameters");
  const Optimiser& of = local.optimiser;
  if (!std::isfinite(of.learning_rate) || of.learning_rate <= 0)
    check.problem(fmt::format("a learning rate of {}; expected a positive number", of.learning_rate));
  if (!std::isfinite(of.weight_decay) || of.weight_decay < 0)
    check.problem(fmt::format("a weight decay of {}; expected a number that is not negative", of.weight_decay));
}

}  // namespace

void convert(const Local& local, OperandCheck& check) { same_count(check, local.reads[0], local.writes[0], "the read region", "the written region"); }

void mean_square(const Local& local, OperandCheck& check) {
  check.pair(local.reads[0], local.reads[1], "y", "the target");
  one_loss(local, check);
  mean_over(local, check);
}

void mean_square_grad(const Local& local, OperandCheck& check) {
  check.pair(local.reads[0], local.reads[1], "y", "the target");
  check.pair(local.reads[0], local.writes[0], "y", "dy");
  mean_over(local, check);
}

void softmax_statistics(const Local& local, OperandCheck& check) {
  LogitExtents extents;
  if (logits_of_tokens(local, check, extents)) statistics_of(check, local.writes[0], extents, false);
}

void cross_entropy(const Local& local, OperandCheck& check) {
  if (targets_of_tokens(local, check)) one_loss(local, check);
}

void cross_entropy_grad(const Local& local, OperandCheck& check) {
  if (targets_of_tokens(local, check)) check.same(local.writes[0], local.reads[0], "dlogits", "the array of logits");
}

void sgd(const Local& local, OperandCheck& check) { parameters_and_gradient(local, check); }

void adamw(const Local& local, OperandCheck& check) {
  parameters_and_gradient(local, check);
  const auto moment = [&](const Region& region, std::string_view name) {
    same_count(check, region, local.reads[0], name, "the array of parameters");
  };
  moment(local.reads[2], "m"), moment(local.reads[3], "v"), moment(local.writes[1], "the new m"), moment(local.writes[2], "the new v");
  const Optimiser& of = local.optimiser;
  for (const double beta : {of.beta1, of.beta2})
    if (!(beta >= 0 && beta < 1)) check.problem(fmt::format("a beta of {}; expected a number of at least 0 and below 1", beta));
  if (!std::isfinite(of.epsilon) || of.epsilon <= 0) check.problem(fmt::format("an epsilon of {}; expected a positive number", of.epsilon));
  if (of.step < 1) check.problem(fmt::format("step {}; steps count from 1", of.step));
}

}  // namespace podsim::shapes

#include "validation/calibration/fit/identify.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <set>

namespace podsim {

namespace {

constexpr double tolerance = 1e-3;  // of the squared length of a column
constexpr double influence = 1e-3;  // the least, on ln(predicted)
constexpr double smallest_time = 1e-7;
constexpr double share_of_step = 0.01;
constexpr double unlimited_part = 1e-2;  // a link that takes less of the base machine's time is no limit
constexpr int most_turns = 8;
constexpr int most_touches = 3;         // solutions by tangents of one problem
constexpr int most_touches_of_steps = 6;  // where transfers end behind arithmetic here and not there
constexpr double tangents_meet = 1e-5;  // simulated times, as a share of them
constexpr double least_ratio = 1e-3;  // of a value with a prior for its logarithm, to its specification
constexpr double smoothness = 1;  // of ln(efficiency over the base machine's) between neighbours on a dense curve, over the scatter

struct State {
  std::vector<int> chosen;   // of the parameters, in their order
  std::vector<bool> pinned;  // stays on its bound
  std::set<int> stands_for;  // of the chosen: moves predictions as one does that was not chosen
  std::vector<Undetermined> undetermined;

  [[nodiscard]] bool same_choice(const State& other) const {
    return chosen == other.chosen && pinned == other.pinned && stands_for == other.stands_for;
  }
};

/// What one turn of fit() ended with.
struct Turn {
  State state;
  Fit fit;
  std::vector<bool> pinned;  // after it
};

LeastSquares problem_of(const std::vector<Parameter>& parameters, const std::vector<int>& chosen, const Eigen::VectorXd& start, const CalibrateOptions& options,
                        Predictions& predictions) {
  const auto count = static_cast<Eigen::Index>(chosen.size());
  std::vector<Parameter> turned;
  LeastSquares problem;
  problem.start = problem.low = problem.high = problem.prior = Eigen::VectorXd::Zero(count);
  problem.prior_sigma = Eigen::VectorXd::Constant(count, std::numeric_limits<double>::infinity());
  for (Eigen::Index j = 0; j < count; ++j) {
    const int index = chosen[static_cast<std::size_t>(j)];
    const Parameter& parameter = parameters[static_cast<std::size_t>(index)];
    turned.push_back(parameter);
    problem.low[j] = parameter.low, problem.high[j] = parameter.high;
    problem.prior[j] = start[index];
    problem.start[j] = std::clamp(start[index], parameter.low, parameter.high);
    for (const NamedPrior& prior : options.priors) {
      if (prior.path != parameter.path) continue;
      if (!prior.of_ratio) {
        problem.prior_sigma[j] = prior.relative_sigma * start[index];
        continue;
      }
      problem.low[j] = std::max(problem.low[j], least_ratio * start[index]);
      problem.ratios.push_back({j, -1, std::log(start[index]), prior.relative_sigma});
    }
    if (parameter.smooth && j > 0)
      if (const Parameter& before = turned[static_cast<std::size_t>(j - 1)]; before.smooth && before.path == parameter.path)
        problem.ratios.push_back({j - 1, j, std::log(problem.start[j - 1] / problem.start[j]), smoothness});
  }
  if (!problem.ratios.empty()) problem.least_scale = model_error;
  problem.residuals = [turned = std::move(turned), &predictions](const Eigen::VectorXd& x) {
    predictions.turn(turned, x);
    return predictions.tangent_residuals();
  };
  return problem;
}

/// Solves again from where the tangents of simulated times led, until they meet these.
Solution solve_by_tangents(LeastSquares problem, Predictions& predictions) {
  const int most = is_described(predictions.observation(0)) ? most_touches_of_steps : most_touches;
  for (int round = 1;; ++round) {
    problem.residuals(problem.start);  // sets the values
    predictions.touch();
    Solution solution = solve(problem);
    problem.residuals(solution.x);
    const double missed = predictions.touch();
    if (missed > 0) solution.residuals = problem.residuals(solution.x);
    if (missed <= tangents_meet || round == most) return solution;
    problem.start = solution.x;
  }
}

/// How far times that are zero count as moved: a tenth of a microsecond, where only training steps and runs tell a hundredth of the shortest.
double extent_of_zero(const Predictions& predictions) {
  double shortest = std::numeric_limits<double>::infinity();
  for (std::size_t i = 0; i < predictions.size(); ++i) {
    if (!is_described(predictions.observation(i))) return smallest_time;
    shortest = std::min(shortest, predictions.observation(i).time.count());
  }
  return share_of_step * shortest;
}

/// How far a value counts as moved: itself, or for times that are zero this time, for shares that are zero a hundredth.
double extent_of(const Parameter& parameter, double x, double zero) {
  if (parameter.kind == Parameter::Kind::time) return std::max(x, zero / parameter.unit);
  return std::max(x, parameter.kind == Parameter::Kind::share ? 0.01 : 1e-6);
}

/// The first three, in words.
std::string joined(const std::vector<Parameter>& parameters, const std::vector<int>& which) {
  constexpr std::size_t most = 3;
  std::vector<std::string> names;
  for (const int w : which) {
    const Parameter& parameter = parameters[static_cast<std::size_t>(w)];
    if (names.size() < most) names.push_back(parameter.path + (parameter.at.empty() ? "" : " at " + parameter.at));
  }
  const std::string more = which.size() > most ? fmt::format(" and {} more", which.size() - most) : "";
  return fmt::format("{}{} {}", fmt::join(names, ", "), more, which.size() == 1 ? "does" : "together do");
}

bool has_prior(const Parameter& parameter, const CalibrateOptions& options) {
  return std::any_of(options.priors.begin(), options.priors.end(), [&](const NamedPrior& prior) { return prior.path == parameter.path; });
}

/// Fitted in any case, and what moves predictions as it does keeps its value.
bool has_ratio_prior(const Parameter& parameter, const CalibrateOptions& options) {
  return std::any_of(options.priors.begin(), options.priors.end(), [&](const NamedPrior& prior) { return prior.path == parameter.path && prior.of_ratio; });
}

/// Chooses anew from the influence of every parameter at x. zero: extent_of_zero().
State choose(const std::vector<Parameter>& parameters, const Eigen::VectorXd& x, const Eigen::MatrixXd& jacobian, const std::vector<bool>& pinned,
             const CalibrateOptions& options, double zero) {
  State state{{}, pinned, {}, {}};
  std::vector<int> told;
  const auto undetermined = [&](std::size_t k, std::string why) {
    state.undetermined.push_back({parameters[k].path, parameters[k].at, std::move(why), probe_for(parameters[k]), parameters[k].last});
  };
  for (std::size_t k = 0; k < parameters.size(); ++k) {
    const auto column = jacobian.col(static_cast<Eigen::Index>(k));
    const double most = column.cwiseAbs().maxCoeff() * extent_of(parameters[k], x[static_cast<Eigen::Index>(k)], zero);
    if (pinned[k])
      undetermined(k, parameters[k].kind == Parameter::Kind::time
                          ? "the observations would have it below zero while others keep their values: it is zero, and those are fitted"
                          : "the observations would have it unlimited: it keeps its value, and others are fitted to that");
    else if (has_ratio_prior(parameters[k], options))
      told.push_back(static_cast<int>(k));
    else if (has_prior(parameters[k], options) || parameters[k].smooth)
      state.chosen.push_back(static_cast<int>(k));
    else if (most < influence)
      undetermined(k, most == 0 ? "no prediction depends on it" : "it is less than 0.1 % of every prediction");
    else
      told.push_back(static_cast<int>(k));
  }
  Eigen::MatrixXd columns(jacobian.rows(), static_cast<Eigen::Index>(told.size()));
  for (std::size_t i = 0; i < told.size(); ++i) columns.col(static_cast<Eigen::Index>(i)) = jacobian.col(told[i]);
  const std::vector<Dependence> dependences = dependences_of(columns, tolerance);
  for (std::size_t i = 0; i < told.size(); ++i) {
    if (!dependences[i].dependent || has_ratio_prior(parameters[static_cast<std::size_t>(told[i])], options)) {
      state.chosen.push_back(told[i]);
      continue;
    }
    std::vector<int> with;
    for (const int w : dependences[i].with) with.push_back(told[static_cast<std::size_t>(w)]);
    state.stands_for.insert(with.begin(), with.end());
    undetermined(static_cast<std::size_t>(told[i]), "it moves every prediction as " + joined(parameters, with));
  }
  std::sort(state.chosen.begin(), state.chosen.end());
  return state;
}

}  // namespace

std::string probe_for(const Parameter& parameter) {
  const std::string& path = parameter.path;
  if (path == "chip.hbm_bandwidth") return "hbm_copy of several sizes, the largest of hundreds of MiB";
  if (path == "chip.matmul_efficiency") return "matmul of several sizes, square and flat, the largest of thousands in each extent";
  if (path.starts_with("software.core_share")) return "a collective matmul of several sizes, overlapped and plain, beside the matmul and the collective alone";
  if (path == "chip.attention_efficiency") return "training steps of one model with sequences of several lengths, at equal tokens";
  if (path.starts_with("dcn")) return "one training step on 1, 2 and many slices";
  if (path == "chip.overlap_hbm") return "matmuls whose arithmetic and memory traffic take about as long, beside hbm_copy";
  if (path == "software.per_message")
    return "a few KiB over one hop and over several (a permute to a far device), and collectives over several numbers of devices";
  if (path == "chip.injection_bandwidth") return "a shift by +1 alone, and shifts by +1 and by -1 at once, of tens of MiB";
  if (path.ends_with("latency")) return "the same collective of a few KiB over axes of other lengths, and a permute over several hops";
  if (path.starts_with("link")) return "transfers of tens of MiB, over each axis separately";
  if (path.starts_with("software.launch")) return "the same operation of a few KiB and of tens of MiB, over several numbers of devices";
  return "a permute, or another collective, of tens of MiB over the same links";
}

Fit fit(const std::vector<Parameter>& parameters, const System& system, const CalibrateOptions& options, Predictions& predictions) {
  const auto count = static_cast<Eigen::Index>(parameters.size());
  Eigen::VectorXd start(count);
  for (Eigen::Index k = 0; k < count; ++k) {
    const Parameter& parameter = parameters[static_cast<std::size_t>(k)];
    double value = parameter.field->get(system.machine, parameter.entries.front());
    if (parameter.point >= 0 && parameter.field->unit == FieldUnit::efficiency)
      value = system.machine.software.efficiency.at(static_cast<std::size_t>(cost_kind_of(static_cast<CollectiveKind>(parameter.entries.front()))))
                  .at(static_cast<std::size_t>(parameter.point))
                  .efficiency;
    else if (parameter.point >= 0)
      value = system.machine.chip.matmul_table.points.at(static_cast<std::size_t>(parameter.point)).efficiency;
    start[k] = from_physical(parameter, value);
  }
  std::vector<int> all(parameters.size());
  std::iota(all.begin(), all.end(), 0);
  std::vector<bool> pinned(parameters.size(), false);
  Eigen::VectorXd x = start;
  State state;
  Fit result;
  std::vector<Turn> turns;
  for (int turn = 0; turn < most_turns; ++turn) {
    predictions.system().machine = system.machine;
    LeastSquares everything = problem_of(parameters, all, x, options, predictions);
    predictions.turn(parameters, everything.start);
    predictions.touch();
    const Eigen::VectorXd residuals = everything.residuals(everything.start);
    State next = choose(parameters, x, jacobian_of(everything, everything.start, residuals), pinned, options, extent_of_zero(predictions));
    if (turn > 0 && next.chosen == state.chosen) break;
    const auto again = std::find_if(turns.begin(), turns.end(), [&](const Turn& before) { return before.state.same_choice(next); });
    if (again != turns.end()) {  // choices go round: the turns that are left repeat those from `again` on
      const auto first = static_cast<int>(again - turns.begin()), last = first + (most_turns - 1 - first) % (turn - first);
      Turn& ended = turns[static_cast<std::size_t>(last)];
      state = last == first ? std::move(next) : std::move(ended.state);
      result = std::move(ended.fit);
      pinned = std::move(ended.pinned);
      break;
    }
    state = std::move(next);
    x = start;
    for (std::size_t k = 0; k < parameters.size(); ++k)
      if (pinned[k] && parameters[k].kind == Parameter::Kind::time) x[static_cast<Eigen::Index>(k)] = parameters[k].low;
    predictions.system().machine = system.machine;
    predictions.turn(parameters, x);
    for (std::size_t k = 0; k < parameters.size(); ++k)  // what is unlimited stays so, unless it is fitted
      if (parameters[k].kind == Parameter::Kind::rate && std::isinf(parameters[k].field->get(system.machine, parameters[k].entries.front())))
        for (const int entry : parameters[k].entries) parameters[k].field->set(predictions.system().machine, entry, std::numeric_limits<double>::infinity());
    const LeastSquares problem = problem_of(parameters, state.chosen, x, options, predictions);
    result.solution = solve_by_tangents(problem, predictions);
    result.covariance = covariance_of(problem, result.solution);
    problem.residuals(result.solution.x);
    result.system = predictions.system();
    for (std::size_t j = 0; j < state.chosen.size(); ++j) x[state.chosen[j]] = result.solution.x[static_cast<Eigen::Index>(j)];
    // A time went to zero while a later value with the same influence kept its own: fit that one instead. An unlimited link: other limits apply.
    for (const int k : state.chosen) {
      const Parameter& parameter = parameters[static_cast<std::size_t>(k)];
      const bool idle_time = parameter.kind == Parameter::Kind::time && state.stands_for.contains(k);
      const bool idle_link = parameter.kind == Parameter::Kind::rate && parameter.path.starts_with("link");
      if ((idle_time && x[k] <= parameter.low) || (idle_link && x[k] <= unlimited_part)) pinned[static_cast<std::size_t>(k)] = true;
    }
    turns.push_back({state, result, pinned});
  }
  for (const int k : state.chosen) result.parameters.push_back(parameters[static_cast<std::size_t>(k)]);
  for (std::size_t k = 0; k < parameters.size(); ++k)
    if (pinned[k] && parameters[k].kind == Parameter::Kind::time) result.zero.push_back(parameters[k]);
  result.undetermined = std::move(state.undetermined);
  return result;
}

}  // namespace podsim

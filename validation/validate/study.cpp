#include "validation/validate/study.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <initializer_list>
#include <set>
#include <sstream>
#include <utility>

#include "algorithms/collectives/collectives.hpp"
#include "algorithms/gemm/gemm.hpp"
#include "sim/base/units.hpp"
#include "sim/config/message_file.hpp"
#include "validation/validate/study.pb.h"
#include "workloads/scenario/read_scenario.hpp"
#include "workloads/scenario/scenario_message.hpp"
#include "workloads/training/model_message.hpp"

namespace podsim {

namespace {

constexpr FileFormat study_format{"a study", 0, 1};
constexpr int most_parts = 16;

static_assert(static_cast<int>(Tier::other_sizes) == proto::Study::other_sizes &&
              static_cast<int>(Tier::other_operation) == proto::Study::other_operation &&
              static_cast<int>(Tier::other_scale) == proto::Study::other_scale && static_cast<int>(Tier::composite) == proto::Study::composite &&
              static_cast<int>(Tier::other_products) == proto::Study::other_products);

class StudyReader {
 public:
  explicit StudyReader(const std::string& file) : file_{study_format, file, message_}, name_{file} {}

  Expected<Study> read(std::string_view text, bool with_cases) {
    if (!file_.parse(text)) return file_.error();
    Study study;
    study.machine = message_.machine();
    study.machine_where = file_.where(root_.at("machine"));
    study.values = values_of(message_, root_);
    study.system = system_of(message_, root_);
    if (message_.has_host()) {
      if (const auto time = parse_seconds(message_.host().value(), file_.where(root_.at("host").at("value"))))
        study.host = HostTime{*time, message_.host().source()};
      else
        file_.problem(time.error());
    }
    for (int h = 0; h < message_.hypothesis_size(); ++h) study.hypotheses.push_back(hypothesis(message_.hypothesis(h), root_.at("hypothesis", h)));
    for (int m = 0; m < message_.training_model_size(); ++m) models_.push_back(training_model_of(message_.training_model(m), file_, root_.at("training_model", m)));
    for (int s = 0; s < message_.step_size(); ++s) study.steps.push_back(step(message_.step(s), root_.at("step", s)));
    for (int r = 0; r < message_.run_size(); ++r) study.runs.push_back(run(message_.run(r), root_.at("run", r)));
    if (study.hypotheses.empty()) study.hypotheses.push_back({"as podsim runs it", {}});
    if (with_cases && message_.case__size() == 0) file_.problem(Diagnostic{{name_, 1, 1}, "expected at least one case { ... }, found none"});
    for (int c = 0; c < message_.case__size(); ++c) {
      const Place place = root_.at("case", c);
      study.cases.push_back(read_case(message_.case_(c), place, study.system.has_value()));
    }
    study.same_machine.assign(message_.same_machine().begin(), message_.same_machine().end());
    if (!file_.ok()) return file_.error();
    return study;
  }

 private:
  template <class Message>
  std::vector<StudyValue> values_of(const Message& message, const Place& place) {
    std::vector<StudyValue> values;
    for (int i = 0; i < message.set_size(); ++i) values.push_back({message.set(i).path(), message.set(i).value(), message.set(i).source(), file_.where(place.at("set", i))});
    return values;
  }

  /// `system`, or in older studies the `pod`, of a message.
  template <class Message>
  std::optional<Fields> system_of(const Message& message, const Place& place) {
    return system_of(message.has_system() ? &message.system() : nullptr, place.at("system"), message.has_pod() ? &message.pod() : nullptr, place.at("pod"));
  }

  std::optional<Fields> system_of(const proto::Scenario* scenario, const Place& at, const proto::Study::Pod* pod, const Place& pod_at) {
    if (scenario == nullptr && pod == nullptr) return std::nullopt;
    if (scenario != nullptr && pod != nullptr) file_.problem(pod_at, "expected a system or the pod of older studies, found both");
    Fields fields;
    if (pod != nullptr) {
      fields.add_value("slice", pod->slice(), file_.where(pod_at.at("slice")));
      fields.add_value("mesh", pod->mesh(), file_.where(pod_at.at("mesh")));
      if (pod->snake()) fields.add("mesh_order", "snake", file_.where(pod_at.at("snake")));
    } else {
      fields = read_fields(*scenario, file_, at);
    }
    for (const FieldKind* field : fields.given())
      if (field->part() != FieldKind::Part::system || field->name == "machine" || field->name == "set")
        file_.problem({fields.where(field->name), std::string{field->name} + " does not belong to the system of a study"});
    if (!fields.has("slice")) file_.problem(scenario != nullptr ? at : pod_at, "slice is missing");
    if (fields.has("mesh"))
      if (const auto mesh = parse_mesh(fields.text("mesh"), fields.where("mesh")); !mesh) file_.problem(mesh.error());
    return fields;
  }

  StudyStep step(const proto::Study::TrainingStep& message, const Place& place) {
    StudyStep result;
    result.name = message.name();
    result.products = message.products();
    result.where = file_.where(place);
    if (const auto algorithm = gemm_algorithm(message.products()); message.has_products() && !algorithm) file_.problem(place.at("products"), algorithm.error().message);
    if ((message.maxtext_size() > 0) == message.has_model()) file_.problem(place, "expected keys of maxtext or a model, found " + std::string{message.has_model() ? "both" : "neither"});
    for (const std::string& keys : message.maxtext()) {
      std::istringstream words{keys};
      for (std::string key; words >> key;) result.maxtext.push_back(key);
    }
    if (!message.has_model()) {
      for (const auto& [field, given] : std::initializer_list<std::pair<const char*, bool>>{{"mesh", message.has_mesh()},
                                                                                           {"batch", message.has_batch()},
                                                                                           {"microbatches", message.has_microbatches()},
                                                                                           {"pipeline", message.has_pipeline()},
                                                                                           {"virtual_stages", message.has_virtual_stages()},
                                                                                           {"remat", message.has_remat()},
                                                                                           {"pad", message.has_pad()},
                                                                                           {"shard_optimizer_over_data", message.has_shard_optimizer_over_data()}})
        if (given && message.maxtext_size() > 0) file_.problem(place.at(field), "MaxText's keys say this; expected KEY=VALUE");
      return result;
    }
    TrainingStep& step = result.step;
    const auto take = [&](const char* field, auto parsed, auto& into) {
      if (parsed) into = *std::move(parsed);
      else file_.problem(place.at(field), parsed.error().message);
    };
    if (const auto own = std::ranges::find(models_, message.model(), &TrainingModel::name); own != models_.end()) step.model = *own;
    else take("model", find_training_model(message.model()), step.model);
    if (message.has_mesh()) take("mesh", parse_training_mesh(message.mesh(), file_.where(place.at("mesh"))), step.mesh);
    take("remat", parse_remat(message.remat(), file_.where(place.at("remat"))), step.remat);
    step.batch = message.batch();
    step.microbatches = message.microbatches();
    step.pipeline = message.pipeline();
    step.virtual_stages = message.virtual_stages();
    step.pad = message.pad();
    step.shard_optimizer_over_data = message.shard_optimizer_over_data();
    if (const auto whole = divided(step); !whole) file_.problem(place, whole.error().message);
    return result;
  }

  StudyRun run(const proto::Study::Run& message, const Place& place) {
    StudyRun result{message.name(), read_fields(message.scenario(), file_, place.at("scenario")), file_.where(place)};
    for (const char* field : {"machine", "set"})
      if (result.fields.has(field)) file_.problem({result.fields.where(field), std::string{field} + " does not belong to a run of a study, whose machine is that of its case"});
    if (!run_names_.insert(message.name()).second) file_.problem(place.at("name"), "there is a run " + quoted(message.name()) + " already");
    return result;
  }

  Hypothesis hypothesis(const proto::Study::Hypothesis& message, const Place& place) {
    Hypothesis result{message.name(), {}};
    const Place matmul = place.at("matmul");
    const auto schedule = observed_schedule_named(message.matmul());
    if (!schedule || *schedule == ObservedSchedule::unknown)
      file_.problem(matmul, "expected plain, overlapped or bidirectional, found " + quoted(message.matmul()));
    else
      result.predict.unknown_matmul = *schedule;
    for (int c = 0; c < message.choice_size(); ++c) {
      const Place choice = place.at("choice", c), collective = choice.at("collective"), algorithm = choice.at("algorithm");
      const auto kind = collective_kind_named(message.choice(c).collective());
      if (!kind) {
        file_.problem(collective, "expected a collective, as all-gather, found " + quoted(message.choice(c).collective()));
        continue;
      }
      if (const auto chooser = always(message.choice(c).algorithm(), in_chunks(1)); !chooser)
        file_.problem(algorithm, chooser.error().message);
      result.predict.algorithm.at(static_cast<std::size_t>(*kind)) = message.choice(c).algorithm();
    }
    return result;
  }

  RowFilter filter(const proto::Study::Rows& message, const Place& place) {
    RowFilter rows;
    rows.dataset = message.dataset();
    rows.where = file_.where(place);
    for (int i = 0; i < message.op_size(); ++i) {
      const Place at = place.at("op", i);
      if (const auto op = observed_op_named(message.op(i)))
        rows.ops.push_back(*op);
      else
        file_.problem(at, "expected an operation, as all-gather or matmul, found " + quoted(message.op(i)));
    }
    rows.devices.assign(message.devices().begin(), message.devices().end());
    for (int i = 0; i < message.schedule_size(); ++i) {
      const Place at = place.at("schedule", i);
      if (const auto schedule = observed_schedule_named(message.schedule(i)))
        rows.schedules.push_back(*schedule);
      else
        file_.problem(at, "expected unknown, plain, overlapped or bidirectional, found " + quoted(message.schedule(i)));
    }
    rows.groups.assign(message.groups().begin(), message.groups().end());
    if (message.has_least()) {
      if (const auto least = parse_bytes(message.least(), file_.where(place.at("least"))))
        rows.least = *least;
      else
        file_.problem(least.error());
    }
    if (message.has_with_product()) rows.with_product = message.with_product();
    rows.points.assign(message.points().begin(), message.points().end());
    rows.meshes.assign(message.mesh().begin(), message.mesh().end());
    rows.steps.assign(message.step().begin(), message.step().end());
    rows.pods.assign(message.pods().begin(), message.pods().end());
    rows.runs.assign(message.run().begin(), message.run().end());
    rows.system = system_of(message, place);
    return rows;
  }

  StudyCase read_case(const proto::Study::Case& message, const Place& place, bool has_system) {
    StudyCase result;
    result.name = message.name();
    result.tier = static_cast<Tier>(message.rung());
    result.where = file_.where(place);
    for (int f = 0; f < message.fit_size(); ++f) {
      const Place rows = place.at("fit", f);
      result.fit.push_back(filter(message.fit(f), rows));
      if (result.fit.back().system) file_.problem(rows.at(message.fit(f).has_system() ? "system" : "pod"), "what is fitted has one system: fit_system");
    }
    for (int p = 0; p < message.predict_size(); ++p) result.predict.push_back(filter(message.predict(p), place.at("predict", p)));
    if (result.predict.empty()) result.predict.emplace_back().where = result.where;
    result.fit_system = system_of(message.has_fit_system() ? &message.fit_system() : nullptr, place.at("fit_system"),
                                  message.has_fit_pod() ? &message.fit_pod() : nullptr, place.at("fit_pod"));
    const bool all_have_systems = std::all_of(result.predict.begin(), result.predict.end(), [](const RowFilter& rows) { return rows.system.has_value(); });
    if (!has_system && (!all_have_systems || !result.fit_system))
      file_.problem(place, "expected a system to run on: the study has none, nor have all of fit and predict");
    if (message.has_parts()) {
      const Place parts = place.at("parts");
      if (message.parts() < 2 || message.parts() > most_parts)
        file_.problem(parts, fmt::format("expected 2 to {} parts, found {}", most_parts, message.parts()));
      result.parts = message.parts();
    }
    result.turns = message.has_turns() ? message.turns() : result.parts;
    if (message.has_turns() && !message.has_parts())
      file_.problem(place.at("turns"), "expected the parts that are fitted in turn, found turns without parts");
    else if (message.has_turns() && (message.turns() < 1 || message.turns() > result.parts))
      file_.problem(place.at("turns"), fmt::format("expected 1 to {} turns, as many as there are parts, found {}", result.parts, message.turns()));
    for (const auto& prior : message.prior()) result.priors.push_back({prior.path(), prior.sigma()});
    result.hold.assign(message.hold().begin(), message.hold().end());
    result.values.assign(message.value().begin(), message.value().end());
    result.machine_values = values_of(message, place);
    if (message.has_bound() == message.has_no_bound())
      file_.problem(place, "expected a bound, or the reason why there is no_bound; found " + std::string{message.has_bound() ? "both" : "neither"});
    if (message.has_bound()) {
      const Place bound = place.at("bound");
      result.bound = ErrorBound{message.bound().median(), message.bound().p95()};
      if (!(result.bound->median > 0 && result.bound->p95 >= result.bound->median))
        file_.problem(bound, "expected a median above 0 and a p95 that is no less");
    }
    result.no_bound = message.no_bound();
    for (int p = 0; p < message.pool_size(); ++p) {
      const auto& pool = message.pool(p);
      Pool& added = result.pools.emplace_back(Pool{pool.name(), {}, {}});
      if (pool.has_bar()) added.bar = ErrorBound{pool.bar().median(), pool.bar().p95()};
      if (pool.has_bar_large()) added.bar_large = pool.bar_large();
      if ((added.bar && !(added.bar->median > 0 && added.bar->p95 >= added.bar->median)) || (added.bar_large && !(*added.bar_large > 0)))
        file_.problem(place.at("pool", p), "expected medians above 0 and a p95 that is no less");
    }
    return result;
  }

  proto::Study message_;
  MessageFile file_;
  const std::string& name_;
  Place root_;
  std::vector<TrainingModel> models_;  // the study's own
  std::set<std::string> run_names_;
};

template <class T>
bool among(const std::vector<T>& values, const T& value) {
  return values.empty() || std::find(values.begin(), values.end(), value) != values.end();
}

}  // namespace

bool passes(const RowFilter& filter, const Observation& observation) {
  if (filter.with_product && *filter.with_product != is_composite(observation)) return false;
  if (tensor_bytes(observation) < filter.least || !among(filter.groups, observation.groups) || !among(filter.points, observation.points)) return false;
  if (!among(filter.steps, observation.step) || !among(filter.pods, observation.pods)) return false;
  if (!among(filter.meshes, observation.mesh.empty() ? std::string{} : fmt::format("{}", fmt::join(observation.mesh, "x")))) return false;
  if (!filter.runs.empty() && std::ranges::none_of(filter.runs, [&](const std::string& begin) { return is_run(observation) && observation.run.starts_with(begin); })) return false;
  return among(filter.ops, observation.op) && among(filter.devices, observation.devices) && among(filter.schedules, observation.schedule);
}

Expected<Study> read_study(std::string_view text, const std::string& file) { return StudyReader{file}.read(text, true); }
Expected<Study> read_steps(std::string_view text, const std::string& file) { return StudyReader{file}.read(text, false); }

}  // namespace podsim

#include "tools/command/show_targets.hpp"

#include <fmt/format.h>

#include "sim/base/output_file.hpp"
#include "sim/base/units.hpp"
#include "sim/config/files.hpp"
#include "sim/config/schedule_config.hpp"
#include "sim/schedule/text.hpp"
#include "tools/console/caller.hpp"
#include "workloads/msccl/write_msccl.hpp"
#include "workloads/scenario/plan_choice.hpp"
#include "workloads/scenario/simulate.hpp"

namespace podsim {

Expected<std::string> show_schedule(const Options& options, Format, const RunOptions& how) {
  const auto asked = problem_of(options, DType::bf16, "ideal");
  if (!asked) return asked.error();
  auto posed = pose(asked->system, asked->problem, how);
  if (!posed) return posed.error();
  Schedule schedule = posed->problem.schedule;
  const std::string posed_name = posed->problem.summary.algorithm;
  if (options.flag("lowered") || options.has("msccl-out")) {
    auto lowered = lower_problem(posed->system, std::move(posed->problem), how);
    if (!lowered) return lowered.error();
    schedule = std::move(lowered->lowered);
  }
  if (options.has("msccl-out")) {
    how.tell("writing the algorithm");
    auto algorithm = to_msccl(schedule);
    if (!algorithm) return algorithm.error();
    if (const auto* collective = std::get_if<CollectiveSpec>(&asked->problem)) algorithm->name = fmt::format("{} {}", name_of(collective->kind), posed_name);
    if (auto ok = write_file(options.text("msccl-out"), write_msccl(*algorithm)); !ok) return ok.error();
  }
  if (options.caller != nullptr) {
    options.caller->schedule = std::make_shared<Schedule>(schedule);
    if (!options.has("output")) return std::string{};
  }
  const std::string path = options.has("output") ? options.text("output") : "";
  how.tell("writing the schedule");
  const bool is_text = path.ends_with(".textproto");
  if (!is_text && !path.ends_with(".pb")) return to_text(schedule);
  std::string saved = write_schedule(schedule, is_text ? Encoding::text : Encoding::binary);
  const Bytes size{static_cast<std::int64_t>(saved.size())}, most = is_text ? schedule_limit.text : schedule_limit.binary;
  if (size > most)
    return Diagnostic{option("output"), fmt::format("the schedule is {} in this form, and no more than {} would be read{}", to_text(size), to_text(most),
                                                    is_text ? "; a name that ends in .pb makes it several times smaller" : "")};
  return saved;
}

}  // namespace podsim

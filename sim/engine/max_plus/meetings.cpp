#include <algorithm>

#include "sim/engine/max_plus/pass.hpp"
#include "sim/engine/max_plus/sum.hpp"
#include "sim/engine/reductions.hpp"

namespace podsim::max_plus {

std::optional<Timeline> Pass::run() {
  if (!memories_.applies() || !play_first()) return std::nullopt;
  if (interrupted_ || !met_) return timeline("max-plus");
  if (most_hot_links_ == 0 || !play_meetings()) return std::nullopt;
  return timeline("mixed");
}

Timeline Pass::run_alone() {
  alone_ = true;
  play();
  return timeline({});
}

/// Each flow at its own rate. False: too much meets.
bool Pass::play_first() {
  bool all = play();
  told_all_ = true;
  if (!all && met_ && start_.empty() && hot_links_ <= most_hot_links_ && most_hot_links_ > 0) {
    links_.forget();
    record();
    all = play();
  }
  if (!all || interrupted_ || met_ || !links_.has_suspects()) return all;
  links_.begin_collecting(most_collected());
  if (!play() || interrupted_) return interrupted_;
  const auto misfits = links_.misfits();
  return misfits && std::all_of(misfits->begin(), misfits->end(), [&](std::uint32_t link) { return heat(link); });
}

/// Of suspects' flows. Collecting more would cost more memory than the timeline.
std::size_t Pass::most_collected() const { return std::max<std::size_t>(std::size_t{1} << 20, static_cast<std::size_t>(finished_)); }

Timeline Pass::timeline(std::string_view pass) {
  const bool kept = control_.record || (control_.reader != nullptr && !start_.empty());  // who reads was told times that did not last
  if (!kept) start_.clear(), sent_.clear();
  Timeline result{std::move(start_), std::move(sent_), kept ? reductions_of(model_) : std::vector<Timeline::Reduction>{}};
  result.makespan = Picoseconds{last_};
  result.pass = pass;
  result.finished = finished_;
  result.interrupted = interrupted_;
  return result;
}

/// Plays until one is proven. False: too much meets.
bool Pass::play_meetings() {
  if (start_.empty()) {
    links_.forget();
    record();
    if (!play()) return false;
  }
  for (int plays = 0; plays < limits_.plays; ++plays) {
    if (!spread_heat()) return false;
    hot_.emplace(model_, rates_, is_hot_);
    use(graph_.order(wanted()));
    begin_correcting();
    if (!play() || static_cast<double>(hot_->size()) > limits_.flows * static_cast<double>(model_.deployment.activities())) return false;
    if (interrupted_) {
      keep_known();
      return true;
    }
    const std::size_t before = hot_links_;
    if (!prove()) return false;
    if (hot_links_ > before) continue;
    if (last_ == unknown) return false;  // beyond the clock
    interrupted_ = Picoseconds{last_} > control_.limit;
    return true;
  }
  return false;
}

/// Of a play that was stopped, the times that were found.
void Pass::keep_known() {
  last_ = finished_ = 0;
  for (std::uint32_t i = 0; i < rows_.rows.size(); ++i) {
    const std::uint32_t first = model_.deployment.programs[rows_.rows[i].program].first_activity[rows_.rows[i].task];
    for (std::uint32_t a = first; a < first + who_of(i).doers; ++a) {
      if (i < played_ && sent_[a].count() != unknown) {
        ++finished_;
        last_ = std::max(last_, sent_[a].count());
      } else {
        start_[a] = sent_[a] = not_yet;
      }
    }
  }
}

/// Links of hot flows are hot too: a flow that others hold back is there longer. False: these are too many.
bool Pass::spread_heat() {
  const std::vector<bool> was_hot = is_hot_;
  for (std::uint32_t path = 0; path < model_.paths.size(); ++path) {
    const auto links = rates_.links_of(path);
    if (std::none_of(links.begin(), links.end(), [&](const PathLink& on) { return was_hot[on.link]; })) continue;
    for (const PathLink& on : links)
      if (!model_.links[on.link].is_memory && !is_hot_[on.link] && !heat(on.link)) return false;
  }
  return true;
}

/// Whether flows that are not hot fit their links at all times, and hot ones are alone on theirs. Other links become hot. False: these are too many, or
/// too many flows are on them to tell. Finds the makespan.
bool Pass::prove() {
  links_.forget();
  if (!cross_all()) return false;
  if (!links_.has_suspects()) return true;
  links_.begin_collecting(most_collected());
  if (!cross_all()) return false;
  const auto misfits = links_.misfits();
  return misfits && std::all_of(misfits->begin(), misfits->end(), [&](std::uint32_t link) { return is_hot_[link] || heat(link); });
}

bool Pass::cross_all() {
  last_ = *std::max_element(core_free_.begin(), core_free_.end());
  for (std::uint32_t i = 0; i < rows_.rows.size(); ++i) {
    const Row& row = rows_.rows[i];
    if (cost_of(i).kind == TaskCost::Kind::transfer) {
      if (!cross_row(i)) return false;
    } else if (cost_of(i).kind == TaskCost::Kind::work && who_of(i).doers > 0) {
      const auto first = sent_.begin() + model_.deployment.programs[row.program].first_activity[row.task];
      last_ = std::max(last_, std::max_element(first, first + who_of(i).doers)->count());
    }
  }
  return true;
}

bool Pass::cross_row(std::uint32_t i) {
  const Row& row = rows_.rows[i];
  const TaskCost& cost = cost_of(i);
  const Participants& who = who_of(i);
  const Timings::OfTransfer* const times = timings_.of_transfer(cost);
  const std::int64_t* reductions = timings_.of_reduction(cost);
  std::uint32_t receiving = no_device, activity = model_.deployment.programs[row.program].first_activity[row.task];
  for (std::size_t l = 0; l < who.to.size(); ++l) {
    if (who.to[l] == no_device) continue;
    const std::int64_t start = start_[activity].count(), end = sent_[activity].count();
    ++activity;
    if (!who.to_task.empty())
      if (const std::uint32_t receiver = row_of(model_.deployment.places[who.to[l]].program, who.to_task[l]); receiver != receiving) {
        receiving = receiver;
        reductions = timings_.of_reduction(cost_of(receiver));
      }
    last_ = std::max(last_, sum(end, reductions[speed_class(who.to[l])]));
    const std::uint32_t path = model_.routings[cost.routing][l];
    const Timings::OfTransfer& time = times[timings_.path_classes()[path]];
    if (time.flow == 0) continue;
    const bool hot = hot_->on(path);
    for (std::uint32_t c = crossing_rows_[path]; c < crossing_rows_[path + 1]; ++c) {
      const Crossing& on = crossings_[c];
      if (!is_hot_[on.link] && !links_.cross(on.link, hot ? rates_.capacity[on.link] : on.draw, sum(start, time.delay), end) && !heat(on.link)) return false;
    }
  }
  return true;
}

/// By when each task is wanted, as the last play saw it: a play must find hot flows in order of time; works that transfers may slow come late; what needs
/// them, later still.
std::vector<std::int64_t> Pass::wanted() {
  std::vector<std::optional<std::vector<std::uint32_t>>> hot_on(model_.routings.size());  // per routing, its senders of hot flows
  std::vector<std::int64_t> result(rows_.rows.size(), unknown);
  hot_begin_.assign(rows_.rows.size(), unknown);
  for (const Row& row : rows_.rows) {
    const TaskCost& cost = model_.costs[row.program][row.task];
    const Participants& who = model_.deployment.who(row.program, row.task);
    if (cost.kind == TaskCost::Kind::receive || who.doers == 0) continue;
    const std::uint32_t number = graph_.number(row.program, row.task);
    const std::uint32_t first = model_.deployment.programs[row.program].first_activity[row.task], end = first + who.doers;
    if (cost.kind == TaskCost::Kind::work) {
      result[number] = std::max_element(sent_.begin() + first, sent_.begin() + end)->count();
      continue;
    }
    const std::vector<std::uint32_t>& paths = model_.routings[cost.routing];
    auto& hot = hot_on[cost.routing];
    if (!hot) {
      hot.emplace();
      for (std::uint32_t l = 0; l < paths.size(); ++l)
        if (paths[l] != no_device && hot_->on(paths[l])) hot->push_back(l);
    }
    for (const std::uint32_t l : *hot)
      if (who.does(l)) hot_begin_[number] = std::min(hot_begin_[number], sum(start_[first + who.rank[l]].count(), timings_.of_transfer(cost)[timings_.path_classes()[paths[l]]].delay));
    result[number] = hot_begin_[number] != unknown ? hot_begin_[number] : std::max_element(start_.begin() + first, start_.begin() + end)->count();
  }
  return result;
}

}  // namespace podsim::max_plus

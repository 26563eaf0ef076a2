#include "tools/command/answer_so_far.hpp"

#include <fmt/format.h>
#include <fmt/ostream.h>

namespace podsim {

namespace {

constexpr std::chrono::milliseconds between_answers{500};

std::string no_plan(const std::string& counted) { return fmt::format("podsim: interrupted before the first plan was known: {}\n", counted); }

}  // namespace

std::string AnswerSoFar::out_of(const std::string& json) const { return format_of(options_) == Format::json ? json : ""; }

void AnswerSoFar::nothing(const std::string& counted, const std::string& json) {
  if (console_.known_so_far != nullptr) console_.known_so_far(out_of(json), no_plan(counted));
}

void AnswerSoFar::better(const std::function<std::string()>& text) {
  if (std::chrono::steady_clock::now() >= made_ + between_answers) last(text);
}

void AnswerSoFar::last(const std::function<std::string()>& text) {
  if (console_.known_so_far == nullptr) return;
  console_.known_so_far(text(), options_.has("output") ? fmt::format("podsim: interrupted: {} is not written; the best plans known so far are on standard output\n", options_.text("output"))
                                                       : "podsim: interrupted: the best plans known so far\n");
  made_ = std::chrono::steady_clock::now();
}

int AnswerSoFar::print_nothing(const std::string& counted, const std::string& json) const {
  if (console_.caller == nullptr) console_.out << out_of(json);
  fmt::print(console_.err, "{}", no_plan(counted));
  return exit_interrupted;
}

}  // namespace podsim

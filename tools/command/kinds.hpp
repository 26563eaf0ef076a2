// Kinds of problem on a command line: the words behind a verb that say one, and the help of one kind.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tools/command/options.hpp"
#include "workloads/scenario/problem_kinds.hpp"

namespace podsim {

/// What a line says behind its verb.
struct KindWords {
  const ProblemKind* kind = nullptr;   // that the first word says; nullptr: it says none
  bool all = false;                    // the first word is `all`, as in `podsim help run all`
  std::vector<std::string> arguments;  // in options alone
};
/// What the first words stand for, of a verb that has the options `described`; a line that begins otherwise is as it was:
///
///   training llama3-70b --batch 64     --training=llama3-70b --batch 64
///   training --maxtext FILE ...        --maxtext FILE ...
///   all-reduce --bytes 16M             --collective=all-reduce --bytes 16M     a name that the field of a kind has
///   all-reduce 16M h100:1x8            --collective=all-reduce --bytes=16M --machine=h100:1x8     words that say by themselves what they are
///   gemm 4096 4096 4096                --gemm=4096,4096,4096
///   step.hlo --machine tpu_v5e         --hlo=step.hlo --machine tpu_v5e        a file that says a problem (known_files.hpp)
KindWords kind_words(const std::vector<std::string>& arguments, const OptionGroup& described);

/// The kinds that a verb with these options takes.
std::vector<const ProblemKind*> kinds_among(const OptionGroup& described);

/// That a first word is none that says a kind.
Diagnostic unknown_kind(const std::string& word, std::string_view verb, const OptionGroup& described);

/// The text above the options of a verb that takes kinds: `usage` with the list of them above its examples.
std::string with_kinds(std::string_view verb, std::string_view usage, const OptionGroup& described);

/// `podsim help VERB`, `podsim help VERB KIND` and `podsim help VERB all`, for a verb that takes kinds: `usage` is with_kinds(). Of one kind its examples and options, then those that all
/// kinds share, of which the usual ones are shown and the others named.
std::string help_of_kinds(std::string_view verb, const std::string& usage, const OptionGroup& described, const KindWords& words);

}  // namespace podsim

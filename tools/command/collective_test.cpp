#include <gtest/gtest.h>

#include <sstream>

#include "tools/command/command.hpp"

namespace podsim {
namespace {

struct Ran {
  int status;
  std::string out, err;
};
Ran podsim(const std::vector<std::string>& arguments) {
  std::ostringstream out, err;
  Console console{out, err};
  const int status = run_verb(arguments, console);
  return {status, out.str(), err.str()};
}

TEST(RunCollective, SaysWhatAutoChose) {
  const Ran ran = podsim({"--machine", "ideal", "--slice", "16", "--set", "link.latency=1us", "--collective", "all-gather", "--axis", "row",
                          "--bytes", "256MiB", "--algorithm", "auto", "--format", "json"});
  EXPECT_EQ(ran.status, 0) << ran.err;
  EXPECT_NE(ran.out.find("\"algorithm\": \"auto: ring\""), std::string::npos) << ran.out;
}

TEST(RunCollective, SaysWhichOptionBelongsToWhich) {
  const auto error = [](std::vector<std::string> more) {
    std::vector<std::string> all{"--machine", "ideal", "--slice", "4x2", "--bytes", "64"};
    all.insert(all.end(), more.begin(), more.end());
    const Ran ran = podsim(all);
    EXPECT_EQ(ran.status, 2);
    return ran.err;
  };
  EXPECT_EQ(error({"--collective", "all-gather", "--axis", "row", "--root", "1"}),
            "podsim: error: --root: belongs to broadcast and reduce, not to all-gather\n");
  EXPECT_EQ(error({"--collective", "broadcast", "--axis", "row", "--shift", "1"}), "podsim: error: --shift: belongs to permute, not to broadcast\n");
  EXPECT_EQ(error({"--collective", "permute", "--axis", "row"}), "podsim: error: a permute needs --shift or --pairs, one of them\n");
  EXPECT_EQ(error({"--collective", "all-gather", "--axis", "row,row"}), "podsim: error: --axis: mesh axis \"row\" is named twice\n");
  EXPECT_EQ(error({"--collective", "permute", "--axis", "row", "--pairs", "/nowhere"}), "podsim: error: /nowhere: cannot read the file: No such file or directory\n");
  EXPECT_NE(error({"--collective", "reduce", "--axis", "row,col", "--root", "8"}).find("--root: "), std::string::npos);
}

}  // namespace
}  // namespace podsim

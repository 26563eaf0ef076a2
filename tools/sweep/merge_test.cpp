// Stores of shards, merged: the store of one computer, or an error that names the files.
#include "tools/sweep/merge.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <random>
#include <thread>

#include "tools/sweep/test_sweep.hpp"

namespace podsim {
namespace {

using test::bytes_of_file;
using test::exported;
using test::Folder;
using test::Outcome;
using test::podsim;
using test::rows_of;
using ::testing::HasSubstr;

const std::string head = "format_version: 1\nsweep { machine: 'ideal' slice: '4' collective: 'all-gather' axis: 'row' ";

/// A sweep of twelve points, of which some are skipped and some share a run; its stores are made on demand.
struct Shards {
  Folder folder;
  std::string sweep = folder.file("s.textproto", head + "bytes: ['16', '32', '64', '128'] algorithm: ['ring', 'auto', 'halving-doubling'] }\n");

  [[nodiscard]] std::string whole() const {
    EXPECT_EQ(podsim("sweep " + sweep + " --store " + folder.file("whole.sqlite")).status, exit_done);
    return folder.file("whole.sqlite");
  }
  [[nodiscard]] std::string shard(int index, int count) const {
    const std::string store = folder.file(fmt::format("{}-of-{}.sqlite", index, count));
    const Outcome outcome = podsim(fmt::format("sweep {} --shard {}/{} --store {}", sweep, index, count, store));
    EXPECT_EQ(outcome.status, exit_done) << outcome.err;
    return store;
  }
  [[nodiscard]] std::vector<std::string> shards(int count) const {
    std::vector<std::string> all;
    for (int index = 1; index <= count; ++index) all.push_back(shard(index, count));
    return all;
  }
};

Outcome merge(std::vector<std::string> parts, const std::string& store) {
  parts.insert(parts.begin(), {"sweep", "--merge"});
  parts.insert(parts.end(), {"--store", store});
  return test::run_words(parts);
}

void change(const std::string& store, const std::string& sql) {
  auto database = Database::open(store, Database::Mode::write);
  ASSERT_TRUE(database) << to_text(database.error());
  const Status ok = database->run(sql);
  ASSERT_TRUE(ok) << to_text(ok.error());
  ASSERT_GT(database->changes(), 0) << sql;
}

void expect_error(const Outcome& outcome, const std::string& message) {
  EXPECT_EQ(outcome.status, exit_bad_input);
  EXPECT_EQ(outcome.err, "podsim: error: " + message + "\n");
  EXPECT_EQ(outcome.out, "");
}

TEST(MergedShards, ExportTheBytesOfOneProcessWhateverTheirNumberAndOrder) {
  const Shards of;
  const std::string expected = exported(of.whole());
  for (const int count : {1, 2, 3, 5, 12, 20}) {
    SCOPED_TRACE(count);
    std::vector<std::string> parts = of.shards(count);
    std::shuffle(parts.begin(), parts.end(), std::mt19937{static_cast<unsigned>(count)});
    const std::string store = of.folder.file(fmt::format("merged_{}.sqlite", count));
    const Outcome merged = merge(parts, store);
    EXPECT_EQ(merged.status, exit_done) << merged.err;
    EXPECT_EQ(merged.err, "");
    EXPECT_EQ(exported(store), expected);
    // It is a store as any other: the sweep has nothing left to do with it.
    EXPECT_EQ(podsim("sweep " + of.sweep + " --store " + store).status, exit_done);
    EXPECT_EQ(rows_of(store, "SELECT finished FROM sessions ORDER BY started_s DESC LIMIT 1"), "0\n");
    EXPECT_EQ(exported(store), expected);
  }
}

TEST(MergedShards, MayBeMergedAsTheyFinishAndSayWhatIsMissing) {
  const Shards of;
  const std::string store = of.folder.file("all.sqlite"), expected = exported(of.whole());
  const Outcome first = merge({of.shard(2, 3)}, store);
  EXPECT_EQ(first.status, exit_false);
  EXPECT_EQ(first.err, "podsim: 8 of 12 points remain in " + store + "\n  in no part: shard 1/3, 3/3\n");
  const Outcome second = merge({of.shard(1, 3)}, store);
  EXPECT_EQ(second.err, "podsim: 4 of 12 points remain in " + store + "\n  in no part: shard 3/3\n");
  EXPECT_EQ(merge({of.shard(3, 3)}, store).status, exit_done);
  EXPECT_EQ(exported(store), expected);
  EXPECT_EQ(merge(of.shards(3), store).status, exit_done);  // all once more
  EXPECT_EQ(exported(store), expected);
}

TEST(MergedShards, APartInWhichPointsRemainIsNamed) {
  const Shards of;
  const std::string part = of.shard(1, 2), empty = of.folder.file("empty.sqlite", ""), store = of.folder.file("all.sqlite");
  change(part, "UPDATE points SET key = NULL, reason = NULL WHERE position = (SELECT min(position) FROM points)");
  const Outcome merged = merge({part, of.shard(2, 2), empty}, store);
  EXPECT_EQ(merged.status, exit_false);
  EXPECT_EQ(merged.err,
            fmt::format("podsim: 1 of 12 points remain in {}\n  {}: 1 of its 6 points remain\n  {}: nothing in it yet\n", store, part, empty));
  // The shard goes on, and is merged again.
  EXPECT_EQ(merge({of.shard(1, 2)}, store).status, exit_done);
  EXPECT_EQ(exported(store), exported(of.whole()));
}

TEST(MergedShards, OnePointInSeveralPartsIsOne) {
  const Shards of;
  const std::string store = of.folder.file("all.sqlite"), whole = of.whole();
  std::vector<std::string> parts = of.shards(2);
  for (const std::string& more : of.shards(3)) parts.push_back(more);
  parts.push_back(whole);
  EXPECT_EQ(merge(parts, store).status, exit_done);
  EXPECT_EQ(exported(store), exported(whole));
  EXPECT_EQ(rows_of(store, "SELECT count(*), count(DISTINCT position) FROM points"), "12,12\n");
  EXPECT_EQ(rows_of(store, "SELECT count(*) FROM runs"), rows_of(whole, "SELECT count(*) FROM runs"));
}

TEST(MergedShards, MayDifferInWhatBelongsToTheHost) {
  const Shards of;
  const std::string whole = of.whole(), store = of.folder.file("all.sqlite");
  const std::vector<std::string> parts = of.shards(2);
  change(parts[0], "UPDATE runs SET wall_s = 17, build_s = 18, events = 19");
  EXPECT_EQ(merge({whole, parts[0], parts[1]}, store).status, exit_done);
  EXPECT_EQ(exported(store), exported(whole));
}

TEST(MergedShards, AnotherResultOfTheSameRunNamesBothFilesAndThePoint) {
  const Shards of;
  const std::string one = of.shard(1, 2), two = of.shard(2, 2), other = of.whole(), store = of.folder.file("all.sqlite");
  ASSERT_EQ(merge({one}, store).status, exit_false);
  const std::string before = bytes_of_file(store);
  const std::string position = rows_of(one, "SELECT min(point) - 1 FROM results WHERE algorithm = 'halving-doubling'"),
                    point = std::to_string(std::stoi(position) + 1);  // no other point shares its run
  for (const std::string figure : {"makespan_s", "link_bytes", "tasks"}) {
    SCOPED_TRACE(figure);
    change(other, fmt::format("UPDATE runs SET {0} = {0} * 2 WHERE key = (SELECT key FROM points WHERE position = {1})", figure, position));
    for (const std::vector<std::string>& parts : {std::vector{one, two, other}, std::vector{two, one, other}}) {
      const Outcome merged = merge(parts, of.folder.file("new.sqlite"));
      EXPECT_THAT(merged.err, HasSubstr(fmt::format("{}: the run of point {} came to another result than in {}", other, point, one)));
      EXPECT_THAT(merged.err, HasSubstr(figure + " is "));
      EXPECT_EQ(merged.status, exit_bad_input);
    }
    EXPECT_THAT(merge({other}, store).err, HasSubstr(fmt::format("{}: the run of point {} came to another result than in {}", other, point, store)));
    EXPECT_TRUE(bytes_of_file(store) == before);
    change(other, fmt::format("UPDATE runs SET {0} = {0} / 2 WHERE key = (SELECT key FROM points WHERE position = {1})", figure, position));
  }
  EXPECT_FALSE(std::filesystem::exists(of.folder.file("new.sqlite")));
}

TEST(MergedShards, AnotherOutcomeOfTheSamePointNamesBothFilesAndThePoint) {
  const Shards of;
  const std::string one = of.shard(1, 2), two = of.shard(2, 2), other = of.whole();
  const std::string position = rows_of(two, "SELECT min(point) - 1 FROM results WHERE status = 'done'"),
                    point = std::to_string(std::stoi(position) + 1);
  change(other, "UPDATE points SET key = NULL, reason = 'it is too late' WHERE position = " + position);
  const Outcome merged = merge({one, two, other}, of.folder.file("all.sqlite"));
  EXPECT_EQ(merged.status, exit_bad_input);
  EXPECT_THAT(merged.err, HasSubstr(fmt::format("{}: point {} differs from {}: ", other, point, two)));
  EXPECT_THAT(merged.err, HasSubstr("it is too late"));
}

TEST(MergedShards, PartsOfDifferentSweepsVersionsAndFilesAreNamed) {
  const Shards of;
  const std::string one = of.shard(1, 2), store = of.folder.file("all.sqlite"), two = of.folder.file("two.sqlite");
  const auto second_of = [&](const std::string& text) {
    std::filesystem::remove(two);
    const std::string sweep = of.folder.file("t.textproto", text);
    EXPECT_EQ(podsim("sweep " + sweep + " --shard 2/2 --store " + two).status, exit_done);
  };
  second_of(head + "bytes: ['16', '32', '64', '256'] algorithm: ['ring', 'auto', 'halving-doubling'] }\n");
  expect_error(merge({one, two}, store),
               two + ": expected a part of the sweep of " + one + ", found that of another sweep, \"" + of.folder.file("t.textproto") + "\"");
  // Comments and spaces make no other sweep.
  second_of("# the same\n" + bytes_of_file(of.sweep));
  EXPECT_EQ(merge({one, two}, store).status, exit_done);
  change(two, "UPDATE meta SET value = '9.9.9' WHERE name = 'version'");
  EXPECT_THAT(merge({one, two}, store).err, HasSubstr(two + ": expected a part of the sweep of " + store + ", found one by podsim 9.9.9, not "));
  std::filesystem::remove(store);
  EXPECT_THAT(merge({one, two}, store).err, HasSubstr(two + ": expected a part of the sweep of " + one + ", found one by podsim 9.9.9, not "));
  // A file that the points name, changed between two shards.
  const std::string schedule = bytes_of_file(PODSIM_SOURCE_DIR "/algorithms/examples/ring_all_gather.textproto"),
                    named = of.folder.file("mine.textproto", schedule);
  const std::string text = "format_version: 1\nsweep { machine: ['ideal', 'tpu_v4'] schedule: '" + named + "' }\n",
                    sweep = of.folder.file("n.textproto", text);
  for (const int index : {1, 2}) {
    EXPECT_EQ(podsim(fmt::format("sweep {} --shard {}/2 --store {}", sweep, index, of.folder.file(fmt::format("n{}.sqlite", index)))).status,
              exit_done);
    const std::string changed = of.folder.file("mine.textproto", "# another day\n" + schedule);
  }
  expect_error(merge({of.folder.file("n1.sqlite"), of.folder.file("n2.sqlite")}, of.folder.file("n.sqlite")),
               fmt::format("{}: schedule={} had other contents there than in {}: run one of the two again with the same files",
                           of.folder.file("n2.sqlite"), named, of.folder.file("n1.sqlite")));
}

TEST(Merge, SaysWhatIsNoPart) {
  const Shards of;
  const std::string one = of.shard(1, 2), two = of.shard(2, 2), none = of.folder.file("none.sqlite"), store = of.folder.file("all.sqlite");
  const std::string text = of.folder.file("text", "no store, but a text that is longer than the head of one"), empty = of.folder.file("empty", "");
  const std::string link = of.folder.file("link.sqlite");
  std::filesystem::create_symlink(one, link);
  expect_error(merge({one, none}, store), none + ": cannot open the file");
  expect_error(merge({one, text}, store), text + ": expected a SQLite file, found something else");
  expect_error(merge({empty}, store), empty + ": expected the store of a sweep, found nothing in it");
  expect_error(merge({one, of.folder.file("")}, store), of.folder.file("") + ": expected a file, found a directory");
  expect_error(merge({one, two, one}, store), fmt::format("--merge: \"{}\" is given twice", one));
  expect_error(merge({one, two, link}, store), fmt::format("--merge: \"{}\" is given twice, also as \"{}\"", link, one));
  expect_error(merge({one, two}, one), fmt::format("--store: expected a file of its own, found \"{}\", the file of --merge", one));
  expect_error(podsim("sweep --merge " + one), "--store is missing: the file that the parts are merged into");
  expect_error(podsim("sweep --merge"), "the required argument for option '--merge' is missing");
  expect_error(podsim("sweep --merge " + one + " --file " + of.sweep + " --store " + store),
               "--merge: expected stores alone, found --file too: the parts know their sweep");
  EXPECT_FALSE(std::filesystem::exists(store));
  const std::string bytes = bytes_of_file(one);
  for (const auto& [version, message] :
       std::vector<std::pair<std::string, std::string>>{{"1", "the store has format 1; run its sweep once more, which brings it to format 2"},
                                                        {"3", "the store has format 3, newer than what this program reads, 2"}}) {
    const std::string other = of.folder.file("other.sqlite", bytes);
    auto database = Database::open(other, Database::Mode::write);
    ASSERT_TRUE(database);
    ASSERT_TRUE(database->run("PRAGMA user_version = " + version));
    expect_error(merge({other, two}, store), other + ": " + message);
  }
  const std::string damaged = of.folder.file("damaged.sqlite", std::string{bytes}.replace(5000, 8000, std::string(8000, '\xaa')));
  EXPECT_THAT(merge({damaged, two}, store).err, HasSubstr(damaged + ": the file is damaged"));
}

TEST(Merge, LeavesWhatIsNoStoreAsItIs) {
  const Shards of;
  const std::string one = of.shard(1, 2), text = "no store, but a text that is longer than the head of one", file = of.folder.file("file", text);
  expect_error(merge({one}, file), file + ": expected a SQLite file, found something else");
  EXPECT_EQ(bytes_of_file(file), text);
  expect_error(merge({one}, of.folder.file("no/such.sqlite")),
               of.folder.file("no/such.sqlite") + ": cannot write the file: No such file or directory");
  expect_error(merge({one}, "/dev/null"), "/dev/null: expected a file that can be replaced");
  {
    auto birds = Database::open(of.folder.file("birds.sqlite"), Database::Mode::write);
    ASSERT_TRUE(birds && birds->run("CREATE TABLE birds (name TEXT)"));
  }
  expect_error(merge({one}, of.folder.file("birds.sqlite")),
               of.folder.file("birds.sqlite") + ": expected the store of a sweep, found a SQLite file of something else");
}

TEST(Merge, WaitsForNoOtherWriterOfItsStore) {
  const Shards of;
  const std::string one = of.shard(1, 2), store = of.shard(2, 2);
  auto writer = SweepStore::open(store);
  ASSERT_TRUE(writer) << to_text(writer.error());
  expect_error(merge({one}, store), store + ": another process is writing to this store; one at a time can");
}

TEST(Merge, AStoreOfAnotherShardStaysAsItIs) {
  const Shards of;
  const std::string one = of.shard(1, 2), before = bytes_of_file(one);
  const std::vector<std::string> names = of.folder.names();
  for (const std::string shard : {"2/2", "1/3"}) {
    expect_error(podsim("sweep " + of.sweep + " --shard " + shard + " --store " + one),
                 fmt::format("{}: expected a store for shard {} alone, found one for shard 1/2", one, shard));
    EXPECT_EQ(of.folder.names(), names);
    EXPECT_EQ(exported(one), exported(of.folder.file("before.sqlite", before)));
    std::filesystem::remove(of.folder.file("before.sqlite"));
  }
}

/// The shards of a sweep of some hundred points: more than a moment's work.
std::vector<std::string> many_points(const Folder& folder) {
  std::vector<std::string> parts;
  for (int index = 1; index <= 3; ++index) {
    parts.push_back(folder.file(fmt::format("{}.sqlite", index)));
    EXPECT_EQ(
        test::run_words({"sweep", "tools/sweep/examples/gemm.textproto", "--shard", fmt::format("{}/3", index), "--store", parts.back()}).status,
        exit_done);
  }
  return parts;
}

TEST(Merge, IsInterruptedWithoutATrace) {
  const Folder folder;
  std::vector<std::string> words = many_points(folder);
  words.insert(words.begin(), {"sweep", "--merge"});
  words.insert(words.end(), {"--store", folder.file("all.sqlite")});
  const std::vector<std::string> names = folder.names();
  const std::atomic<bool> stop{true};
  std::ostringstream out, err;
  Console console{out, err, false, &stop};
  EXPECT_EQ(run_command(words, console), exit_interrupted);
  EXPECT_EQ(err.str(), "podsim: interrupted\n");
  EXPECT_EQ(folder.names(), names);
}

TEST(Merge, ThatIsKilledLeavesItsStoreWhole) {
  const Folder folder;
  const std::vector<std::string> parts = many_points(folder);
  const std::string store = folder.file("all.sqlite");
  const auto begin = std::chrono::steady_clock::now();
  ASSERT_EQ(merge(parts, store).status, exit_done);
  const std::chrono::duration<double> whole = std::chrono::steady_clock::now() - begin;
  const std::string all = exported(store);
  ASSERT_EQ(merge({parts[1]}, folder.file("one.sqlite")).status, exit_false);
  const std::string one_bytes = bytes_of_file(folder.file("one.sqlite")), one = exported(folder.file("one.sqlite"));
  ASSERT_NE(one, all);
  std::mt19937 random{20};
  int killed = 0;
  for (int round = 0; round < 20; ++round) {
    ASSERT_EQ(folder.file("all.sqlite", one_bytes), store);
    const pid_t child = fork();
    if (child == 0) _exit(merge(parts, store).status);
    std::this_thread::sleep_for(whole * std::uniform_real_distribution<double>{0, 1}(random));
    kill(child, SIGKILL);
    int status = 0;
    waitpid(child, &status, 0);
    killed += WIFSIGNALED(status) ? 1 : 0;
    const std::string found = exported(store);
    EXPECT_TRUE(found == all || (found == one && WIFSIGNALED(status))) << "round " << round;
    ASSERT_EQ(merge(parts, store).status, exit_done);
    EXPECT_TRUE(exported(store) == all) << "round " << round;
  }
  EXPECT_GT(killed, 0);
}

}  // namespace
}  // namespace podsim

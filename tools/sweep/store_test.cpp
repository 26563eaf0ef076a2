// Stores that are not what they should be, and who may do what with one.
#include "tools/sweep/store.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "tools/sweep/test_sweep.hpp"

namespace podsim {
namespace {

using test::bytes_of_file;
using test::Folder;
using test::Outcome;
using test::podsim;
using ::testing::HasSubstr;
using ::testing::StartsWith;

const std::string small_sweep = "sweep { machine: 'ideal' slice: '4' collective: 'all-gather' axis: 'row' bytes: ['16', '32', '64'] }";

/// A sweep's file and its store, not begun.
struct Files {
  Folder folder;
  std::string file = folder.file("s.textproto", "format_version: 1\n" + small_sweep), store = folder.file("s.sqlite");
};

/// Both ways of opening a store that is none: an error, status 2, and the bytes stay.
void expect_refused(const Files& files, const std::string& message) {
  const std::string before = bytes_of_file(files.store);
  for (const std::string& command : {"sweep " + files.file, "sweep --store " + files.store + " --status", "sweep --store " + files.store + " --export csv"}) {
    const Outcome outcome = podsim(command);
    EXPECT_EQ(outcome.status, exit_bad_input) << command;
    EXPECT_THAT(outcome.err, StartsWith("podsim: error: " + files.store + ": " + message)) << command;
    EXPECT_EQ(outcome.out, "") << command;
    EXPECT_TRUE(bytes_of_file(files.store) == before) << command;
  }
}

TEST(SweepStore, RefusesRandomBytes) {
  const Files files;
  std::mt19937 random{7};
  for (const std::size_t size : {1U, 16U, 99U, 100U, 512U, 5000U}) {
    SCOPED_TRACE(size);
    std::string bytes;
    for (std::size_t i = 0; i < size; ++i) bytes += static_cast<char>(random());
    const std::string path = files.folder.file("s.sqlite", bytes);
    expect_refused(files, "");
  }
}

TEST(SweepStore, RefusesTextAndSaysWhat) {
  const Files files;
  const std::string path = files.folder.file("s.sqlite", std::string(200, 'x'));
  expect_refused(files, "expected a SQLite file, found something else");
}

TEST(SweepStore, RefusesAStoreOfAnotherProgram) {
  const Files files;
  {
    auto other = Database::open(files.store, Database::Mode::write);
    ASSERT_TRUE(other);
    ASSERT_TRUE(other->run("CREATE TABLE birds (name TEXT)"));
  }
  expect_refused(files, "expected the store of a sweep, found a SQLite file of something else");
}

TEST(SweepStore, RefusesANewerFormat) {
  const Files files;
  ASSERT_EQ(podsim("sweep " + files.file).status, exit_done);
  {
    auto database = Database::open(files.store, Database::Mode::write);
    ASSERT_TRUE(database);
    ASSERT_TRUE(database->run("PRAGMA user_version = 3"));
  }
  expect_refused(files, "the store has format 3, newer than what this program reads, 2");
}

TEST(SweepStore, FormatOneIsReadWithoutItsFalseReasons) {
  const Files files;
  ASSERT_EQ(podsim("sweep " + files.file).status, exit_done);
  const std::string expected = test::exported(files.store);
  const auto reasons = [&] { return test::rows_of(files.store, "SELECT DISTINCT reason FROM points WHERE reason IS NOT NULL ORDER BY 1"); };
  const std::string true_reasons = reasons();
  for (const std::string reason :
       {"interrupted", "simgrid: the child process left with status 1", "simgrid: the child process died of signal 9 (Killed)",
        "simgrid: no process: Resource temporarily unavailable", "simgrid: no pipe: Too many open files"}) {
    {
      auto database = Database::open(files.store, Database::Mode::write);
      ASSERT_TRUE(database);
      ASSERT_TRUE(database->run("UPDATE points SET key = NULL, reason = '" + reason + "' WHERE position = 0"));
      ASSERT_TRUE(database->run("PRAGMA user_version = 1"));
    }
    ASSERT_NE(reasons(), true_reasons);
    ASSERT_EQ(podsim("sweep " + files.file).status, exit_done);
    EXPECT_EQ(reasons(), true_reasons) << reason;
    EXPECT_EQ(test::exported(files.store), expected) << reason;
  }
}

TEST(SweepStore, RefusesTruncatedAndOverwrittenFiles) {
  const Files files;
  ASSERT_EQ(podsim("sweep " + files.file).status, exit_done);
  const std::string whole = bytes_of_file(files.store);
  ASSERT_GT(whole.size(), 20000U);
  for (const std::size_t kept : {std::size_t{50}, std::size_t{100}, std::size_t{2000}, std::size_t{4096}, std::size_t{9000}, whole.size() - 4096}) {
    SCOPED_TRACE(kept);
    const std::string path = files.folder.file("s.sqlite", whole.substr(0, kept));
    expect_refused(files, "");
  }
  std::string overwritten = whole;
  overwritten.replace(5000, 8000, std::string(8000, '\xaa'));
  const std::string path = files.folder.file("s.sqlite", overwritten);
  expect_refused(files, "the file is damaged");
}

TEST(SweepStore, TakesAnEmptyFileAsNewButHasNothingToTellOfIt) {
  const Files files;
  const std::string path = files.folder.file("s.sqlite", "");
  const Outcome status = podsim("sweep --store " + files.store + " --status");
  EXPECT_EQ(status.status, exit_bad_input);
  EXPECT_THAT(status.err, HasSubstr("expected the store of a sweep, found nothing in it"));
  EXPECT_EQ(podsim("sweep " + files.file).status, exit_done);
}

TEST(SweepStore, SaysThatThereIsNone) {
  const Outcome outcome = podsim("sweep --store /no/such/store.sqlite --status");
  EXPECT_EQ(outcome.status, exit_bad_input);
  EXPECT_EQ(outcome.err, "podsim: error: /no/such/store.sqlite: cannot open the file\n");
}

TEST(SweepStore, IsForOneWriterAtATimeAndForReadersMeanwhile) {
  const Files files;
  ASSERT_EQ(podsim("sweep " + files.file).status, exit_done);
  auto writer = SweepStore::open(files.store);
  ASSERT_TRUE(writer) << to_text(writer.error());
  const Outcome second = podsim("sweep " + files.file);
  EXPECT_EQ(second.status, exit_bad_input);
  EXPECT_EQ(second.err, "podsim: error: " + files.store + ": another process is writing to this store; one at a time can\n");
  EXPECT_EQ(podsim("sweep --store " + files.store + " --status").status, exit_done);
}

TEST(SweepStore, IsASingleFileWhenNobodyUsesIt) {
  const Files files;
  ASSERT_EQ(podsim("sweep " + files.file).status, exit_done);
  ASSERT_EQ(podsim("sweep --store " + files.store + " --status").status, exit_done);
  EXPECT_FALSE(std::filesystem::exists(files.store + "-wal"));
  EXPECT_FALSE(std::filesystem::exists(files.store + "-shm"));
}

TEST(SweepStore, AnswersQueriesInEveryFormat) {
  const Files files;
  ASSERT_EQ(podsim("sweep " + files.file).status, exit_done);
  const auto query = [&](const std::string& sql, const std::string& format) {
    const Outcome outcome = test::run_words({"sweep", "--store", files.store, "--query", sql, "--format", format});
    EXPECT_EQ(outcome.status, exit_done) << outcome.err;
    return outcome.out;
  };
  const std::string sql = "SELECT point, bytes, tasks, NULL AS empty, 1.5 AS half FROM results ORDER BY bytes DESC;";
  EXPECT_EQ(query(sql, "csv"), "point,bytes,tasks,empty,half\n3,64,32,,1.5\n2,32,32,,1.5\n1,16,32,,1.5\n");
  EXPECT_EQ(query(sql, "table"), "point  bytes  tasks  empty  half\n3      64     32            1.5\n2      32     32            1.5\n1      16     32            1.5\n");
  const auto json = nlohmann::ordered_json::parse(query(sql, "json"));
  EXPECT_EQ(json["columns"].size(), 5U);
  EXPECT_EQ(json["rows"][2], (nlohmann::ordered_json{{"point", 1}, {"bytes", "16"}, {"tasks", 32}, {"empty", nullptr}, {"half", 1.5}}));
}

TEST(SweepStore, RefusesQueriesThatDoAnythingButRead) {
  const Files files;
  ASSERT_EQ(podsim("sweep " + files.file).status, exit_done);
  const std::string before = bytes_of_file(files.store), elsewhere = files.folder.file("elsewhere");
  for (const std::string& sql : {std::string{"DELETE FROM points"}, std::string{"DROP TABLE runs"}, std::string{"UPDATE meta SET value = ''"},
                                 std::string{"CREATE TABLE t (a)"}, std::string{"PRAGMA query_only = OFF"}, "ATTACH '" + elsewhere + "' AS e",
                                 "VACUUM INTO '" + elsewhere + "'", std::string{"BEGIN"}, std::string{"SELECT 1; DELETE FROM points"}, std::string{""},
                                 std::string{"SELEC 1"}, std::string{"SELECT nothing FROM results"}}) {
    const Outcome outcome = test::run_words({"sweep", "--store", files.store, "--query", sql});
    EXPECT_EQ(outcome.status, exit_bad_input) << sql;
    EXPECT_THAT(outcome.err, StartsWith("podsim: error: ")) << sql;
    EXPECT_EQ(outcome.out, "") << sql;
  }
  EXPECT_TRUE(bytes_of_file(files.store) == before);
  EXPECT_FALSE(std::filesystem::exists(elsewhere));
}

}  // namespace
}  // namespace podsim

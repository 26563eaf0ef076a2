#include "sim/config/text_places.hpp"

#include <gtest/gtest.h>

#include "sim/config/schedule_config.hpp"
#include "sim/config/test_schedules.hpp"
#include "sim/schedule/text.hpp"

namespace podsim {
namespace {

using Places = std::vector<TextPlace>;

TEST(TextPlaces, AreThoseOfTheFieldsHoweverTheyAreWritten) {
  const auto places = places_in(
      "name: \"task { buffer {\"  # task { }\n"
      "mesh { name: \"task\" }\n"
      "program { task { label: 'a' } buffer { }\n"
      "  task: { op { task { } } label: \"x\" 'y' } list: [1, -2.5e3, inf] kind: task }\n"
      "program: [{ task: [ { }, <label: \"b\"> ]; task <> },\n"
      "  { buffer: { } }]\n"
      "other { task { } }",
      "program", {"task", "buffer"});
  ASSERT_EQ(places.size(), 3U);
  EXPECT_EQ(places[0], (PlacesInEntry{{"buffer", {{3, 31}}}, {"task", {{3, 11}, {4, 3}}}}));
  EXPECT_EQ(places[1], (PlacesInEntry{{"task", {{5, 21}, {5, 26}, {5, 42}}}}));
  EXPECT_EQ(places[2], (PlacesInEntry{{"buffer", {{6, 5}}}}));
}

TEST(TextPlaces, OfAScheduleAreWhereItsTasksAndBuffersAreWritten) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const Schedule schedule = random_schedule(seed);
    const std::string text = write_schedule(schedule, Encoding::text);
    const auto read = read_schedule(text, "f.textproto");
    ASSERT_TRUE(read) << to_text(read.error());
    std::vector<std::string> lines;
    std::istringstream stream{text};
    for (std::string line; std::getline(stream, line);) lines.push_back(line);
    const auto expect_at = [&](const WrittenAt& at, const std::string& name) {
      const SourceLocation where = location_of(at);
      EXPECT_EQ(where.file, "f.textproto");
      EXPECT_EQ(lines.at(static_cast<std::size_t>(where.line) - 1).substr(static_cast<std::size_t>(where.column) - 1, name.size() + 2), name + " {");
    };
    for (const Program& program : read->programs) {
      for (const Task& task : program.tasks) expect_at(task.written_at, "task");
      for (const Buffer& buffer : program.buffers) expect_at(buffer.written_at, "buffer");
    }
    const auto binary = read_schedule(write_schedule(schedule, Encoding::binary), "f.pb");
    ASSERT_TRUE(binary);
    for (const Program& program : binary->programs)
      for (const Task& task : program.tasks) EXPECT_EQ(location_of(task.written_at), (SourceLocation{"f.pb", 0, 0}));
  }
}

}  // namespace
}  // namespace podsim

#include "tools/report/sink.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include <filesystem>

#include "sim/base/rng.hpp"
#include "tools/command/test_command.hpp"

namespace podsim {
namespace {

using test::bytes_of_file;
using test::Folder;
using ::testing::IsEmpty;

void write_file_by_sink(const std::string& path, const std::string& bytes, std::size_t piece) {
  auto sink = open_sink(path);
  ASSERT_TRUE(sink) << to_text(sink.error());
  for (std::size_t at = 0; at < bytes.size(); at += piece) (*sink)->write(std::string_view{bytes}.substr(at, piece));
  const auto closed = (*sink)->close();
  ASSERT_TRUE(closed) << to_text(closed.error());
}

std::string inflated(const std::string& path) {
  gzFile file = gzopen(path.c_str(), "rb");
  EXPECT_NE(file, nullptr);
  std::string bytes, piece(1 << 16, '\0');
  for (int count; (count = gzread(file, piece.data(), static_cast<unsigned>(piece.size()))) > 0;)
    bytes.append(piece.data(), static_cast<std::size_t>(count));
  EXPECT_EQ(gzclose(file), Z_OK) << "the checksum holds";
  return bytes;
}

std::string noise(std::size_t size) {
  Rng rng{1};
  std::string bytes;
  for (std::size_t i = 0; i < size; ++i) bytes += static_cast<char>(rng.below(256));
  return bytes;
}

TEST(Sink, KeepsEveryByteOfWhateverSize) {
  const Folder folder;
  for (const std::size_t size : {0u, 1u, 65535u, 65536u, 300000u}) {
    SCOPED_TRACE(size);
    const std::string bytes = noise(size);
    write_file_by_sink(folder.file("a.json"), bytes, 777);
    EXPECT_EQ(bytes_of_file(folder.file("a.json")), bytes);
    write_file_by_sink(folder.file("a.json.gz"), bytes, 777);
    EXPECT_EQ(inflated(folder.file("a.json.gz")), bytes);
  }
  EXPECT_EQ(folder.names(), (std::vector<std::string>{"a.json", "a.json.gz"}));
}

TEST(Sink, ACompressedFileTellsNeitherNameNorTime) {
  const Folder folder;
  write_file_by_sink(folder.file("a.json.gz"), "text", 4);
  write_file_by_sink(folder.file("b.json.gz"), "text", 1);
  const std::string bytes = bytes_of_file(folder.file("a.json.gz"));
  EXPECT_EQ(bytes.substr(0, 10), std::string("\x1f\x8b\x08\0\0\0\0\0\0\xff", 10)) << "magic, deflate, no flags, no time, no level, no system";
  EXPECT_EQ(bytes, bytes_of_file(folder.file("b.json.gz")));
}

TEST(Sink, WhatIsNotClosedLeavesTheOldFileOrNone) {
  const Folder folder;
  const std::string old = folder.file("old.json", "before");
  for (const std::string name : {"new.json", "new.json.gz", "old.json"}) {
    auto sink = open_sink(folder.file(name));
    ASSERT_TRUE(sink);
    (*sink)->write(noise(1 << 20));
  }
  EXPECT_EQ(folder.names(), (std::vector<std::string>{"old.json"}));
  EXPECT_EQ(bytes_of_file(old), "before");
}

TEST(Sink, ALinkStaysALinkToTheNewBytes) {
  const Folder folder;
  std::filesystem::create_symlink(folder.file("real.json", "before"), folder.file("link.json"));
  write_file_by_sink(folder.file("link.json"), "after", 5);
  EXPECT_TRUE(std::filesystem::is_symlink(folder.file("link.json")));
  EXPECT_EQ(bytes_of_file(folder.file("real.json")), "after");
}

TEST(Sink, WhatCannotBeWrittenIsKnownAtOnce) {
  const Folder folder;
  std::filesystem::create_directory(folder.file("folder.json"));
  const std::string none = "No such file or directory";
  for (const auto& [path, why] : {std::pair{folder.file("folder.json"), std::string{"Is a directory"}},
                                  {folder.file("none/a.json"), none},
                                  {folder.file("none/a.json.gz"), none}}) {
    const auto sink = open_sink(path);
    ASSERT_FALSE(sink);
    EXPECT_EQ(to_text(sink.error()), path + ": cannot write the file: " + why);
  }
  EXPECT_EQ(folder.names(), (std::vector<std::string>{"folder.json"}));
}

TEST(Sink, AFullDiskIsAnError) {
  ASSERT_TRUE(std::filesystem::exists("/dev/full"));
  const Folder folder;
  for (const std::string name : {"full.json", "full.json.gz"}) {
    std::filesystem::create_symlink("/dev/full", folder.file(name));
    auto sink = open_sink(folder.file(name));
    ASSERT_TRUE(sink);
    (*sink)->write(noise(1 << 20));
    EXPECT_TRUE((*sink)->failed());
    const auto closed = (*sink)->close();
    ASSERT_FALSE(closed);
    EXPECT_EQ(to_text(closed.error()), folder.file(name) + ": cannot write the file: No space left on device");
  }
}

}  // namespace
}  // namespace podsim

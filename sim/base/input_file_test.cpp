#include "sim/base/input_file.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <filesystem>

#include "sim/base/test_files.hpp"

namespace podsim {
namespace {

using test::Folder;

constexpr SizeLimit limit{Bytes{100'000}, Bytes{300'000}};

std::string message(const std::string& path) {
  const auto bytes = read_file(path, limit);
  return bytes ? "" : to_text(bytes.error());
}

TEST(ReadFile, GivesEveryByteUpToTheLimitOfItsForm) {
  const Folder folder;
  for (const char first : {'a', '\x89'})
    for (const std::size_t size : {0U, 1U, 65'535U, 65'536U, 65'537U, 100'000U, 100'001U, 300'000U, 300'001U}) {
      SCOPED_TRACE(size);
      const std::string bytes(size, first), path = folder.file("file", bytes);
      const auto read = read_file(path, limit);
      ASSERT_EQ(read.has_value(), size <= (first == 'a' ? 100'000 : 300'000));
      EXPECT_TRUE(!read || *read == bytes);
    }
  EXPECT_EQ(message(folder.file("text", std::string(300'001, 'a'))),
            folder.file("text") + ": expected at most 100 kB (300 kB in binary form), found 300001 bytes");
  EXPECT_EQ(message(folder.file("binary", std::string(300'001, '\x89'))), folder.file("binary") + ": expected at most 300 kB, found 300001 bytes");
}

TEST(ReadFile, WhatHasNoEndIsRefusedAtTheLimit) {
  EXPECT_EQ(message("/dev/zero"), "/dev/zero: expected at most 100 kB (300 kB in binary form), found more");
  const Folder folder;
  const std::string pipe = folder.file("pipe");
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  const pid_t writer = ::fork();
  if (writer == 0) {
    const int file = ::open(pipe.c_str(), O_WRONLY);
    const std::string piece(4096, '\x89');
    while (::write(file, piece.data(), piece.size()) > 0) {}
    ::_exit(0);
  }
  EXPECT_EQ(message(pipe), pipe + ": expected at most 300 kB, found more");
  int status = 0;
  EXPECT_EQ(::waitpid(writer, &status, 0), writer);
}

TEST(ReadFile, APipeGivesEveryByte) {
  const Folder folder;
  const std::string pipe = folder.file("pipe");
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  std::string bytes;
  for (int i = 0; i < 99'999; ++i) bytes += static_cast<char>('a' + i % 23);
  const pid_t writer = ::fork();
  if (writer == 0) {
    const int file = ::open(pipe.c_str(), O_WRONLY);
    for (std::size_t at = 0; at < bytes.size(); at += 1000)
      if (::write(file, bytes.data() + at, std::min<std::size_t>(1000, bytes.size() - at)) < 0) ::_exit(1);
    ::_exit(0);
  }
  const auto read = read_file(pipe, limit);
  EXPECT_TRUE(read && *read == bytes);
  int status = 0;
  EXPECT_EQ(::waitpid(writer, &status, 0), writer);
  EXPECT_EQ(status, 0);
}

TEST(ReadFile, SaysWhyItCannotRead) {
  const Folder folder;
  EXPECT_EQ(message(folder.file("")), folder.file("") + ": expected a file, found a directory");
  EXPECT_EQ(message(folder.file("none")), folder.file("none") + ": cannot read the file: No such file or directory");
  EXPECT_EQ(message(folder.file("file", "x") + "/x"), folder.file("file/x") + ": cannot read the file: Not a directory");
}

TEST(ReadFile, AWaitThatASignalEndsIsCancelledWork) {
  const Folder folder;
  const std::string pipe = folder.file("pipe");
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    struct sigaction action {};
    action.sa_handler = [](int) {};
    ::sigaction(SIGALRM, &action, nullptr);
    ::ualarm(20'000, 20'000);
    const auto bytes = read_file(pipe, limit);  // nobody ever writes
    ::_exit(!bytes && bytes.error().cause == Cause::cancelled ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace podsim

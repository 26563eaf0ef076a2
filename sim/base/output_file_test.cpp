#include "sim/base/output_file.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <thread>

#include "sim/base/file_names.hpp"
#include "sim/base/test_files.hpp"

namespace podsim {
namespace {

using test::bytes_of_file;
using test::Folder;
using Names = std::vector<std::string>;

std::string message(const Status& ok) { return ok ? "" : to_text(ok.error()); }

mode_t mode_of(const std::string& path) {
  struct stat about {};
  EXPECT_EQ(::stat(path.c_str(), &about), 0) << path;
  return about.st_mode & 07777;
}

/// Files of at most so many bytes, for as long as it lives: a disk that fills up.
class LargestFile {
 public:
  explicit LargestFile(rlim_t bytes) {
    ::getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit limit{bytes, before_.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &limit);
    handler_ = std::signal(SIGXFSZ, SIG_IGN);
  }
  ~LargestFile() {
    ::setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, handler_);
  }

 private:
  rlimit before_{};
  void (*handler_)(int) = SIG_DFL;
};

TEST(OutputFile, IsThereWithAllItsBytesWhenItIsClosedAndNotBefore) {
  const Folder folder;
  const std::string old = folder.file("old", "before"), bytes(300'000, 'x');
  for (const std::string& path : {folder.file("new"), old}) {
    auto file = OutputFile::open(path);
    ASSERT_TRUE(file) << to_text(file.error());
    for (std::size_t at = 0; at < bytes.size(); at += 777) file->write(std::string_view{bytes}.substr(at, 777));
    EXPECT_EQ(std::filesystem::exists(path), path == old);
    EXPECT_EQ(bytes_of_file(old), "before");
    EXPECT_EQ(message(file->close()), "");
    EXPECT_EQ(bytes_of_file(path), bytes);
  }
  EXPECT_EQ(folder.names(), (Names{"new", "old"}));
}

TEST(OutputFile, DroppedLeavesTheOldFileAndNothingElse) {
  const Folder folder;
  const std::string old = folder.file("old", "before");
  for (const std::string& path : {folder.file("new"), old}) {
    auto file = OutputFile::open(path);
    ASSERT_TRUE(file);
    file->write(std::string(300'000, 'x'));
  }
  EXPECT_EQ(folder.names(), Names{"old"});
  EXPECT_EQ(bytes_of_file(old), "before");
}

TEST(OutputFile, AFullDiskLeavesTheOldFileAndNothingElseAndIsToldWithItsReason) {
  const Folder folder;
  const std::string old = folder.file("old", "before");
  const LargestFile limit{4096};
  for (const std::string& path : {folder.file("new"), old}) {
    const Status written = write_file(path, std::string(5000, 'x'));
    EXPECT_EQ(message(written), path + ": cannot write the file: File too large");
    EXPECT_EQ(written.error().cause, Cause::environment);
  }
  EXPECT_EQ(folder.names(), Names{"old"});
  EXPECT_EQ(bytes_of_file(old), "before");
}

TEST(OutputFile, WhatCannotBeWrittenIsKnownBeforeAnythingIs) {
  const Folder folder;
  std::filesystem::create_directory(folder.file("folder"));
  std::filesystem::create_symlink("loop", folder.file("loop"));
  for (const auto& [path, why] : {std::pair{folder.file("folder"), "cannot write the file: Is a directory"},
                                  {folder.file("none/file"), "cannot write the file: No such file or directory"},
                                  {folder.file("loop"), "cannot follow the link: Too many levels of symbolic links"},
                                  {std::string{""}, "cannot write the file: No such file or directory"}}) {
    const auto file = OutputFile::open(path);
    ASSERT_FALSE(file) << path;
    EXPECT_EQ(to_text(file.error()), path.empty() ? why : path + ": " + why);
  }
  EXPECT_EQ(folder.names(), (Names{"folder", "loop"}));
}

TEST(OutputFile, FinishedItIsStillNotThereAndCloseOnlyRenames) {
  const Folder folder;
  const std::string old = folder.file("old", "before");
  for (const std::string& path : {folder.file("new"), old}) {
    {
      auto dropped = OutputFile::open(path);
      ASSERT_TRUE(dropped) << to_text(dropped.error());
      dropped->write("never");
      EXPECT_EQ(message(dropped->finish()), "");
    }
    auto file = OutputFile::open(path);
    ASSERT_TRUE(file) << to_text(file.error());
    file->write("after");
    EXPECT_EQ(message(file->finish()), "");
    EXPECT_EQ(std::filesystem::exists(path), path == old);
    EXPECT_EQ(bytes_of_file(old), "before");
    const LargestFile full{0};
    EXPECT_EQ(message(file->close()), "");
    EXPECT_EQ(bytes_of_file(path), "after");
  }
  const LargestFile full{2};
  auto file = OutputFile::open(folder.file("full"));
  ASSERT_TRUE(file) << to_text(file.error());
  file->write("more than fits");
  EXPECT_NE(message(file->finish()), "");
}

TEST(OutputFile, KeepsTheModeOfWhatItReplaces) {
  const Folder folder;
  for (const mode_t mode : {0600U, 0664U, 0755U}) {
    const std::string path = folder.file("file", "before");
    ASSERT_EQ(::chmod(path.c_str(), mode), 0);
    EXPECT_EQ(message(write_file(path, "after")), "");
    EXPECT_EQ(mode_of(path), mode);
    EXPECT_EQ(bytes_of_file(path), "after");
  }
  const mode_t mask = ::umask(027);
  EXPECT_EQ(message(write_file(folder.file("new"), "")), "");
  ::umask(mask);
  EXPECT_EQ(mode_of(folder.file("new")), 0640U) << "a new file as the user wants new files";
}

TEST(OutputFile, ALinkStaysALinkAndTheFileAtItsEndHasTheBytes) {
  const Folder folder;
  std::filesystem::create_directory(folder.file("sub"));
  const std::string real = folder.file("sub/real", "before");
  std::filesystem::create_symlink("sub/real", folder.file("second"));
  std::filesystem::create_symlink(folder.file("second"), folder.file("first"));
  std::filesystem::create_symlink("sub/none", folder.file("dangling"));
  for (const auto& [link, target] : {std::pair{"first", real}, {"dangling", folder.file("sub/none")}}) {
    EXPECT_EQ(message(write_file(folder.file(link), "after")), "");
    EXPECT_TRUE(std::filesystem::is_symlink(folder.file(link)));
    EXPECT_EQ(bytes_of_file(target), "after");
  }
  EXPECT_EQ(folder.names(), (Names{"dangling", "first", "second", "sub"}));
}

TEST(OutputFile, WhatIsNoRegularFileIsWrittenDirectly) {
  const Folder folder;
  EXPECT_EQ(message(write_file("/dev/null", "lost")), "");
  EXPECT_EQ(message(write_file("/dev/full", "lost")), "/dev/full: cannot write the file: No space left on device");
  const std::string pipe = folder.file("pipe");
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  std::string read;
  std::thread reader{[&] { read = bytes_of_file(pipe); }};
  EXPECT_EQ(message(write_file(pipe, "through the pipe")), "");
  reader.join();
  EXPECT_EQ(read, "through the pipe");
  EXPECT_EQ(folder.names(), Names{"pipe"});
}

TEST(OutputFile, ANameOfAnOpenFileGoesOnWhereThatFileIs) {
  const Folder folder;
  const std::string path = folder.file("log", "");
  Descriptor log{::open(path.c_str(), O_WRONLY)};
  ASSERT_EQ(write_all(log.get(), "first "), 0);
  for (const std::string name : {"/dev/fd/", "/proc/self/fd/"}) EXPECT_EQ(message(write_file(name + std::to_string(log.get()), name + " ")), "");
  ASSERT_EQ(write_all(log.get(), "last"), 0);
  EXPECT_EQ(bytes_of_file(path), "first /dev/fd/ /proc/self/fd/ last");
  log.close();
  EXPECT_EQ(message(write_file("/dev/fd/987", "")), "/dev/fd/987: cannot write the file: Bad file descriptor");
  EXPECT_EQ(own_descriptor("/proc/self/fd/12"), 12);
  EXPECT_EQ(end_of_links("/dev/stdout").has_value() ? *end_of_links("/dev/stdout") : "", "/proc/self/fd/1");
}

TEST(OutputFile, WhereTheFolderTakesNoOtherFilesTheOldOneIsOverwritten) {
  const Folder folder;
  const std::string path = folder.file("file", "before"), other = folder.file("new");
  ASSERT_EQ(::chmod(path.c_str(), 0666), 0);
  ASSERT_EQ(::chmod(folder.file("").c_str(), 0555), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    constexpr uid_t no_device = 65534;
    if (::geteuid() == 0 && ::setuid(no_device) != 0) ::_exit(1);  // root writes to every folder
    const bool overwritten = message(write_file(path, "after")) == "";
    const bool refused = message(write_file(other, "")) == other + ": cannot write the file: Permission denied";
    ::_exit(overwritten && refused ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  ASSERT_EQ(::chmod(folder.file("").c_str(), 0755), 0);
  EXPECT_EQ(bytes_of_file(path), "after");
}

TEST(OutputFile, ASignalThatEndsTheProcessLeavesNoPartFiles) {
  const Folder folder;
  const std::string old = folder.file("old", "before");
  const pid_t child = ::fork();
  if (child == 0) {
    std::signal(SIGTERM, [](int signal) {
      remove_part_files();
      std::signal(signal, SIG_DFL);
      std::raise(signal);
    });
    auto one = OutputFile::open(old), other = OutputFile::open(folder.file("new"));
    if (one && other && folder.names().size() == 3) std::raise(SIGTERM);
    ::_exit(1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM) << status;
  EXPECT_EQ(folder.names(), Names{"old"});
  EXPECT_EQ(bytes_of_file(old), "before");
}

TEST(OutputFile, ASetOfNewFilesAppearsWholeOrNotAtAll) {
  const Folder folder;
  const auto opened = [&](std::vector<OutputFile>& files, const char* name) {
    auto file = OutputFile::open(folder.file(name));
    ASSERT_TRUE(file);
    file->write("x");
    ASSERT_TRUE(file->finish());
    files.push_back(*std::move(file));
  };
  std::vector<OutputFile> files;
  for (const char* name : {"a", "b", "c"}) opened(files, name);
  std::filesystem::create_directory(folder.file("c"));  // cannot be renamed over
  EXPECT_FALSE(OutputFile::close_together(files));
  files.clear();
  EXPECT_EQ(folder.names(), Names{"c"});
  std::filesystem::remove(folder.file("c"));
  for (const char* name : {"a", "b", "c"}) opened(files, name);
  EXPECT_TRUE(OutputFile::close_together(files));
  EXPECT_EQ(folder.names(), (Names{"a", "b", "c"}));
  EXPECT_FALSE(files_appear());
}

/// Closes so many files together in a child that is killed once the first or the last of them is there, or has ended.
void close_and_be_killed(const Folder& folder, int count, std::string_view text) {
  const auto is_written = [&](int f) {
    std::ifstream file(folder.file(std::to_string(f)));
    std::string found;
    return file >> found && found == text;
  };
  const pid_t child = ::fork();
  if (child == 0) {
    std::vector<OutputFile> files;
    for (int f = 0; f < count; ++f) {
      auto file = OutputFile::open(folder.file(std::to_string(f)));
      if (!file) ::_exit(1);
      file->write(text);
      if (!file->finish()) ::_exit(1);
      files.push_back(*std::move(file));
    }
    ::_exit(OutputFile::close_together(files, {folder.file(std::to_string(count))}) ? 0 : 1);
  }
  while (!is_written(0) && !is_written(count - 1) && ::waitpid(child, nullptr, WNOHANG) == 0) {}
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
}

TEST(OutputFile, AKilledProcessLeavesNoPartOfASetThatLooksWhole) {
  constexpr int count = 500;
  const Folder folder;
  const auto read = [&](int f) { return std::filesystem::exists(folder.file(std::to_string(f))) ? bytes_of_file(folder.file(std::to_string(f))) : "none"; };
  std::string_view before = "none";
  for (const std::string_view text : {"first", "second", "third"}) {
    if (text == "third")  // an earlier set that is whole, and larger
      for (int f = 0; f <= count; ++f) static_cast<void>(folder.file(std::to_string(f), std::string{before}));
    close_and_be_killed(folder, count, text);
    if (read(0) != text) {
      EXPECT_EQ(read(0), "none") << "of a set that is replaced";
    } else {
      for (int f = 0; f < count; ++f) EXPECT_EQ(read(f), text) << f;
      EXPECT_EQ(read(count), "none");
    }
    before = text;
  }
}

TEST(OutputFile, TheFirstOfASetIsItsLastToAppear) {
  const Folder folder;
  std::vector<OutputFile> files;
  for (const char* name : {"a", "b", "c"}) {
    static_cast<void>(folder.file(name, "before"));
    auto file = OutputFile::open(folder.file(name));
    ASSERT_TRUE(file);
    file->write("after");
    ASSERT_TRUE(file->finish());
    files.push_back(*std::move(file));
  }
  std::filesystem::remove(folder.file("b"));
  std::filesystem::create_directories(folder.file("b/in it"));  // cannot be replaced
  EXPECT_FALSE(OutputFile::close_together(files, {folder.file("d", "of an earlier set")}));
  files.clear();
  EXPECT_EQ(folder.names(), (Names{"b", "c"}));
  EXPECT_EQ(bytes_of_file(folder.file("c")), "after");
}

TEST(FileIdentity, IsOfTheFileAndNotOfItsName) {
  const Folder folder;
  const std::string file = folder.file("file", "x"), other = folder.file("other", "x");
  std::filesystem::create_symlink("file", folder.file("link"));
  std::filesystem::create_symlink("none", folder.file("dangling"));
  std::filesystem::create_hard_link(file, folder.file("hard"));
  std::filesystem::create_directory(folder.file("sub"));
  ASSERT_TRUE(identity_of(file));
  for (const char* name : {"link", "hard", "./file", "sub/../file"}) EXPECT_EQ(identity_of(folder.file(name)), identity_of(file)) << name;
  EXPECT_NE(identity_of(other), identity_of(file));
  for (const char* name : {"dangling", "./none", "sub/../none"}) EXPECT_EQ(identity_of(folder.file(name)), identity_of(folder.file("none"))) << name;
  EXPECT_TRUE(identity_of(folder.file("none")));
  for (const std::string& path : {folder.file("sub"), std::string{"/dev/null"}, folder.file("nowhere/file")}) EXPECT_FALSE(identity_of(path)) << path;
}

}  // namespace
}  // namespace podsim

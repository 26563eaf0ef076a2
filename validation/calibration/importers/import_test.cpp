// The table of formats, and how bytes get to it: from memory, from files, compressed.
#include "validation/calibration/importers/import.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "sim/config/byte_source.hpp"
#include "validation/calibration/importers/testing.hpp"

namespace podsim {
namespace {

using testing::error_of;

std::string gzipped(std::string text, int level = 6) {
  z_stream stream{};
  EXPECT_EQ(deflateInit2(&stream, level, Z_DEFLATED, 16 + MAX_WBITS, 8, Z_DEFAULT_STRATEGY), Z_OK);
  std::string out(deflateBound(&stream, text.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(text.data());
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  EXPECT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

const std::string two_rows = "op,devices,bytes,seconds\nall-gather,4,1024,1e-3\nhbm_copy,1,64,1e-6\n";

TEST(Import, AnUnknownFormatIsAnErrorWithTheNearest) {
  EXPECT_EQ(error_of(import_observations("ncl-tests", "", "f")).substr(0, 68), "\"ncl-tests\" is no format of measurements, did you mean \"nccl-tests\"?");
  EXPECT_EQ(error_of(import_file("csv", "/no/such/file")), "/no/such/file: cannot read the file: No such file or directory");
  EXPECT_EQ(error_of(import_file("csv", "/tmp")), "/tmp: expected a file, found a directory");
}

TEST(Import, CompressedBytesAreTheSameBytes) {
  // Two members make one text.
  for (const std::string& bytes : {two_rows, gzipped(two_rows), gzipped(two_rows.substr(0, 30)) + gzipped(two_rows.substr(30))}) {
    const auto result = import_observations("csv", bytes, "f");
    ASSERT_TRUE(result) << to_text(result.error());
    EXPECT_EQ(result->observations.size(), 2U);
    EXPECT_EQ(result->observations[1].where, (SourceLocation{"f", 3, 1}));
  }
}

TEST(Import, AFileIsItsBytes) {
  const auto path = std::filesystem::temp_directory_path() / "podsim_import_test.csv.gz";
  std::ofstream{path, std::ios::binary} << gzipped(two_rows);
  const auto result = import_file("csv", path.string());
  std::filesystem::remove(path);
  ASSERT_TRUE(result) << to_text(result.error());
  EXPECT_EQ(result->observations.size(), 2U);
}

TEST(Import, CompressedBytesCutShortOrCorruptAreToldWithTheirPlace) {
  const std::string bytes = gzipped(two_rows);
  for (std::size_t length = 2; length < bytes.size(); ++length)
    EXPECT_THAT(error_of(import_observations("csv", bytes.substr(0, length), "f")),
                ::testing::MatchesRegex("f:[0-9]+:[0-9]+: the compressed data are cut short at compressed byte " + std::to_string(length)));
  const std::string end = "f:" + std::to_string(std::ranges::count(two_rows, '\n') + 1) + ":" + std::to_string(two_rows.size() - two_rows.rfind('\n')) + ": ";
  std::string corrupt = bytes;
  corrupt[bytes.size() - 6] = static_cast<char>(corrupt[bytes.size() - 6] ^ 1);
  EXPECT_EQ(error_of(import_observations("csv", corrupt, "f")),
            end + "the compressed data are corrupt before compressed byte " + std::to_string(bytes.size() - 4) + ": incorrect data check")
      << "behind the checksum, which the length follows";
  EXPECT_EQ(error_of(import_observations("csv", bytes + "more", "f")),
            end + "the compressed data are corrupt before compressed byte " + std::to_string(bytes.size() + 2) + ": incorrect header check");
}

TEST(Import, BytesAreInflatedWhereverTheBlocksOfTheReaderEnd) {
  for (const int level : {0, 1, 9})
    for (const std::size_t size : {std::size_t{1} << 16, (std::size_t{1} << 16) - 1, std::size_t{1} << 17, std::size_t{200'001}}) {
      SCOPED_TRACE(std::to_string(size) + " bytes at level " + std::to_string(level));
      std::string text;
      for (std::size_t i = 0; i < size; ++i) text += static_cast<char>('a' + i * i % 26);
      const std::string two = gzipped(text, level) + gzipped(text, level);
      const auto all = read_all(*source_of(two, "f"), 2 * size, "f");
      ASSERT_TRUE(all) << to_text(all.error());
      EXPECT_TRUE(*all == text + text);
      EXPECT_FALSE(read_all(*source_of(two, "f"), 2 * size - 1, "f"));
      const auto cut = read_all(*source_of(std::string_view{two}.substr(0, two.size() - 1), "f"), 2 * size, "f");
      ASSERT_FALSE(cut);
      EXPECT_EQ(to_text(cut.error()), "f:1:" + std::to_string(2 * size + 1) + ": the compressed data are cut short at compressed byte " + std::to_string(two.size() - 1));
    }
}

TEST(Import, EveryFormatRefusesNothingAtAll) {
  for (const ImportFormat& format : import_formats()) EXPECT_FALSE(import_observations(format.name, "", "f")) << format.name;
}

}  // namespace
}  // namespace podsim

#include "sim/config/byte_source.hpp"

#include <google/protobuf/io/gzip_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <zlib.h>

#include <cstring>
#include <limits>
#include <memory>
#include <optional>
#include <utility>

#include "sim/base/input_file.hpp"
#include "sim/base/invariant.hpp"

namespace podsim {

namespace io = google::protobuf::io;

namespace {

constexpr int block_size = 1 << 16;

/// Whole blocks but for the last, so that the first has the bytes that tell the form, also from a pipe.
class FileBlocks : public io::CopyingInputStream {
 public:
  explicit FileBlocks(InputFile file) : file_{std::move(file)} {}

  int Read(void* into, int size) override {
    int have = 0;
    while (have < size) {
      const auto count = file_.read(static_cast<char*>(into) + have, static_cast<std::size_t>(size - have));
      if (!count) {
        failure_ = count.error();
        return -1;
      }
      if (*count == 0) break;
      have += static_cast<int>(*count);
    }
    return have;
  }
  [[nodiscard]] const std::optional<Diagnostic>& failure() const { return failure_; }

 private:
  InputFile file_;
  std::optional<Diagnostic> failure_;
};

/// Protobuf's GzipInputStream ends where the compressed bytes do, be that within a member; this one knows the difference.
class GzipMembers : public io::ZeroCopyInputStream {
 public:
  explicit GzipMembers(io::ZeroCopyInputStream& compressed) : compressed_{compressed}, gzip_{&compressed, io::GzipInputStream::GZIP, block_size} {}

  bool Next(const void** data, int* size) override {
    if (!wrong_.empty()) return false;
    if (gzip_.Next(data, size)) {
      if (gzip_.ZlibErrorCode() != Z_BUF_ERROR)  // it had nothing to go on with
        between_members_ = gzip_.ZlibErrorCode() == Z_STREAM_END;
      given_ += *size;
      return true;
    }
    if (gzip_.ZlibErrorCode() == Z_MEM_ERROR)
      wrong_ = "there is no memory to inflate it";
    else if (gzip_.ZlibErrorCode() != Z_STREAM_END)
      wrong_ = "the compressed data are corrupt before " + place() + (gzip_.ZlibErrorMessage() != nullptr ? std::string{": "} + gzip_.ZlibErrorMessage() : "");
    else if (!between_members_)
      wrong_ = "the compressed data are cut short at " + place();
    return false;
  }
  void BackUp(int count) override {
    gzip_.BackUp(count);
    given_ -= count;
  }
  bool Skip(int count) override {
    const void* data = nullptr;
    for (int size = 0; count > 0; count -= size) {
      if (!Next(&data, &size)) return false;
      if (size > count) {
        BackUp(size - count);
        return true;
      }
    }
    return true;
  }
  [[nodiscard]] int64_t ByteCount() const override { return given_; }  // gzip_ itself adds what was backed up
  /// Why there is no more; empty: it is the end.
  [[nodiscard]] const std::string& wrong() const { return wrong_; }

 private:
  [[nodiscard]] std::string place() const { return "compressed byte " + std::to_string(compressed_.ByteCount()); }

  io::ZeroCopyInputStream& compressed_;
  io::GzipInputStream gzip_;
  bool between_members_ = false;
  int64_t given_ = 0;
  std::string wrong_;
};

bool begins_as_gzip(io::ZeroCopyInputStream& stream) {
  const void* data = nullptr;
  int size = 0;
  if (!stream.Next(&data, &size)) return false;
  const bool gzip = size >= 2 && std::memcmp(data, "\x1f\x8b", 2) == 0;
  stream.BackUp(size);
  return gzip;
}

/// Streams on top of each other.
class StackedSource : public ByteSource {
 public:
  /// `blocks`: what `bytes` reads from, if it can fail.
  StackedSource(std::string file, std::unique_ptr<FileBlocks> blocks, std::unique_ptr<io::ZeroCopyInputStream> bytes)
      : file_{std::move(file)}, blocks_{std::move(blocks)}, bytes_{std::move(bytes)} {
    if (begins_as_gzip(*bytes_)) inflated_.emplace(*bytes_);
  }

  io::ZeroCopyInputStream& stream() override {
    if (inflated_) return *inflated_;
    return *bytes_;
  }
  [[nodiscard]] Status ended() const override {
    if (blocks_ && blocks_->failure()) return *blocks_->failure();
    if (inflated_ && !inflated_->wrong().empty()) return Diagnostic{{file_}, inflated_->wrong()};
    return success();
  }

 private:
  std::string file_;
  std::unique_ptr<FileBlocks> blocks_;
  std::unique_ptr<io::ZeroCopyInputStream> bytes_;
  std::optional<GzipMembers> inflated_;
};

}  // namespace

Expected<std::string_view> ByteSource::next() {
  const void* data = nullptr;
  int size = 0;
  while (size == 0)
    if (!stream().Next(&data, &size)) {
      if (Status end = ended(); !end) return end.error();
      return std::string_view{};
    }
  return std::string_view{static_cast<const char*>(data), static_cast<std::size_t>(size)};
}

std::unique_ptr<ByteSource> source_of(std::string_view bytes, const std::string& file) {
  PODSIM_ASSERT(bytes.size() <= std::numeric_limits<int>::max());
  return std::make_unique<StackedSource>(file, nullptr,
                                         std::make_unique<io::ArrayInputStream>(bytes.data(), static_cast<int>(bytes.size()), block_size));
}

Expected<std::unique_ptr<ByteSource>> source_of_file(const std::string& path) {
  auto file = InputFile::open(path);
  if (!file) return file.error();
  auto blocks = std::make_unique<FileBlocks>(*std::move(file));
  auto bytes = std::make_unique<io::CopyingInputStreamAdaptor>(blocks.get(), block_size);
  return std::unique_ptr<ByteSource>{std::make_unique<StackedSource>(path, std::move(blocks), std::move(bytes))};
}

Expected<std::string> read_all(ByteSource& source, std::size_t most, const std::string& file) {
  std::string bytes;
  while (true) {
    const auto piece = source.next();
    if (!piece) return piece.error();
    if (piece->empty()) return bytes;
    bytes += *piece;
    if (bytes.size() > most) return Diagnostic{{file}, "expected at most " + std::to_string(most) + " bytes, found more"};
  }
}

}  // namespace podsim

#include "sim/config/byte_source.hpp"

#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <zlib.h>

#include <algorithm>
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

/// Inflates gzip members after each other. Protobuf's GzipInputStream ends where the compressed bytes do, be that within a member, and keeps back what it inflated before an error.
class GzipMembers : public io::ZeroCopyInputStream {
 public:
  explicit GzipMembers(io::ZeroCopyInputStream& compressed) : compressed_{compressed} {
    constexpr int gzip_alone = 16;
    has_inflater_ = inflateInit2(&zlib_, MAX_WBITS + gzip_alone) == Z_OK;
    if (!has_inflater_) wrong_ = no_memory;
  }
  ~GzipMembers() override {
    if (has_inflater_) inflateEnd(&zlib_);
  }
  GzipMembers(const GzipMembers&) = delete;
  GzipMembers& operator=(const GzipMembers&) = delete;

  bool Next(const void** data, int* size) override {
    if (backed_up_ == 0) inflate_some();
    *data = inflated_.data() + (inflated_.size() - static_cast<std::size_t>(backed_up_));
    *size = backed_up_;
    given_ += backed_up_;
    return std::exchange(backed_up_, 0) > 0;
  }
  void BackUp(int count) override {
    backed_up_ += count;
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
  [[nodiscard]] int64_t ByteCount() const override { return given_; }
  /// Why there is no more; empty: it is the end.
  [[nodiscard]] const std::string& wrong() const { return wrong_; }

 private:
  static constexpr const char* no_memory = "there is no memory to inflate it";

  /// As much as a block has, into inflated_ and backed_up_; nothing at the end and after an error.
  void inflate_some() {
    inflated_.resize(block_size);
    int made = 0;
    while (made == 0 && wrong_.empty()) {
      if (zlib_.avail_in == 0 && !take_compressed()) {
        if (!between_members_) wrong_ = "the compressed data are cut short at " + place();
        break;
      }
      if (between_members_) inflateReset(&zlib_);
      zlib_.next_out = reinterpret_cast<Bytef*>(inflated_.data());
      zlib_.avail_out = block_size;
      const int status = inflate(&zlib_, Z_NO_FLUSH);
      made = block_size - static_cast<int>(zlib_.avail_out);
      between_members_ = status == Z_STREAM_END;
      if (status == Z_MEM_ERROR)
        wrong_ = no_memory;
      else if (status != Z_OK && status != Z_STREAM_END && status != Z_BUF_ERROR)  // the last: it had nothing to go on with
        wrong_ = "the compressed data are corrupt before " + place() + (zlib_.msg != nullptr ? std::string{": "} + zlib_.msg : "");
    }
    inflated_.resize(static_cast<std::size_t>(made));
    backed_up_ = made;
  }
  bool take_compressed() {
    const void* data = nullptr;
    int size = 0;
    while (size == 0)
      if (!compressed_.Next(&data, &size)) return false;
    zlib_.next_in = static_cast<Bytef*>(const_cast<void*>(data));  // zlib does not write to it
    zlib_.avail_in = static_cast<uInt>(size);
    return true;
  }
  [[nodiscard]] std::string place() const { return "compressed byte " + std::to_string(compressed_.ByteCount() - static_cast<int64_t>(zlib_.avail_in)); }

  io::ZeroCopyInputStream& compressed_;
  z_stream zlib_{};
  bool has_inflater_ = false, between_members_ = false;
  std::string inflated_;
  int backed_up_ = 0;  // of its end
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

namespace {

/// Behind the bytes, of a text.
SourceLocation end_of(std::string_view bytes, const std::string& file) {
  const std::size_t line = bytes.rfind('\n');  // npos + 1 is 0
  return {file, static_cast<int>(std::ranges::count(bytes, '\n')) + 1, static_cast<int>(bytes.size() - (line + 1)) + 1};
}

}  // namespace

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
    if (!piece) return Diagnostic{end_of(bytes, file), piece.error().message, piece.error().cause};
    if (piece->empty()) return bytes;
    bytes += *piece;
    if (bytes.size() > most) return Diagnostic{{file}, "expected at most " + std::to_string(most) + " bytes, found more"};
  }
}

}  // namespace podsim

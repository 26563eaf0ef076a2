#include "validation/calibration/importers/byte_source.hpp"

#include <zlib.h>

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "sim/base/input_file.hpp"

namespace podsim {

namespace {

class MemorySource : public ByteSource {
 public:
  explicit MemorySource(std::string_view bytes) : rest_{bytes} {}
  Expected<std::size_t> read(char* into, std::size_t size) override {
    const std::size_t count = std::min(size, rest_.size());
    std::copy_n(rest_.data(), count, into);
    rest_.remove_prefix(count);
    return count;
  }

 private:
  std::string_view rest_;
};

class FileSource : public ByteSource {
 public:
  explicit FileSource(InputFile file) : file_{std::move(file)} {}
  Expected<std::size_t> read(char* into, std::size_t size) override { return file_.read(into, size); }

 private:
  InputFile file_;
};

/// Any number of gzip members, one after the other.
class InflatedSource : public ByteSource {
 public:
  InflatedSource(std::unique_ptr<ByteSource> compressed, std::string file)
      : compressed_{std::move(compressed)}, file_{std::move(file)}, input_(std::size_t{1} << 16) {}
  ~InflatedSource() override {
    if (form_ == Form::gzip) inflateEnd(&stream_);
  }
  InflatedSource(const InflatedSource&) = delete;
  InflatedSource& operator=(const InflatedSource&) = delete;

  Expected<std::size_t> read(char* into, std::size_t size) override {
    if (form_ == Form::unknown)
      if (Done begun = begin(); !begun) return begun.error();
    return form_ == Form::gzip ? inflate_some(into, size) : plain(into, size);
  }

 private:
  enum class Form { unknown, plain, gzip };

  Done begin() {
    while (have_ < 2) {
      const auto count = compressed_->read(input_.data() + have_, input_.size() - have_);
      if (!count) return count.error();
      if (*count == 0) break;
      have_ += *count;
    }
    if (have_ < 2 || std::memcmp(input_.data(), "\x1f\x8b", 2) != 0) {
      form_ = Form::plain;
      return done();
    }
    if (inflateInit2(&stream_, 16 + MAX_WBITS) != Z_OK) return Diagnostic{{file_}, "there is no memory to inflate it"};
    form_ = Form::gzip;
    give(have_);
    return done();
  }
  void give(std::size_t count) {
    stream_.next_in = reinterpret_cast<Bytef*>(input_.data());
    stream_.avail_in = static_cast<uInt>(count);
    taken_ += count;
  }
  /// Where the compressed bytes are read.
  [[nodiscard]] std::string at() const { return "at compressed byte " + std::to_string(taken_ - stream_.avail_in); }

  Expected<std::size_t> plain(char* into, std::size_t size) {
    if (begin_ == have_) return compressed_->read(into, size);
    const std::size_t count = std::min(size, have_ - begin_);
    std::copy_n(input_.data() + begin_, count, into);
    begin_ += count;
    return count;
  }

  Expected<std::size_t> inflate_some(char* into, std::size_t size) {
    stream_.next_out = reinterpret_cast<Bytef*>(into);
    const auto wanted = static_cast<uInt>(std::min(size, std::size_t{1} << 30));
    stream_.avail_out = wanted;
    while (stream_.avail_out == wanted) {
      if (stream_.avail_in == 0) {
        const auto count = compressed_->read(input_.data(), input_.size());
        if (!count) return count.error();
        if (*count == 0) {
          if (between_members_) return std::size_t{0};
          return Diagnostic{{file_}, "the compressed data are cut short " + at()};
        }
        give(*count);
      }
      if (between_members_) {
        inflateReset(&stream_);
        between_members_ = false;
      }
      const int status = inflate(&stream_, Z_NO_FLUSH);
      if (status == Z_STREAM_END)
        between_members_ = true;
      else if (status != Z_OK && status != Z_BUF_ERROR)
        return Diagnostic{{file_}, "the compressed data are corrupt " + at() + (stream_.msg != nullptr ? std::string{": "} + stream_.msg : "")};
    }
    return std::size_t{wanted - stream_.avail_out};
  }

  std::unique_ptr<ByteSource> compressed_;
  std::string file_;
  std::vector<char> input_;
  std::size_t begin_ = 0, have_ = 0;  // of what was read to tell the form
  std::size_t taken_ = 0;
  Form form_ = Form::unknown;
  bool between_members_ = false;
  z_stream stream_{};
};

}  // namespace

std::unique_ptr<ByteSource> source_of(std::string_view bytes) { return std::make_unique<MemorySource>(bytes); }

Expected<std::unique_ptr<ByteSource>> source_of_file(const std::string& path) {
  auto file = InputFile::open(path);
  if (!file) return file.error();
  return std::unique_ptr<ByteSource>{std::make_unique<FileSource>(*std::move(file))};
}

std::unique_ptr<ByteSource> inflated(std::unique_ptr<ByteSource> compressed, const std::string& file) {
  return std::make_unique<InflatedSource>(std::move(compressed), file);
}

Expected<std::string> read_all(ByteSource& source, std::size_t most, const std::string& file) {
  std::string bytes;
  constexpr std::size_t piece = std::size_t{1} << 16;
  for (std::size_t have = 0;;) {
    bytes.resize(have + piece);
    const auto count = source.read(bytes.data() + have, piece);
    if (!count) return count.error();
    bytes.resize(have += *count);
    if (*count == 0) return bytes;
    if (have > most) return Diagnostic{{file}, "is longer than " + std::to_string(most) + " bytes"};
  }
}

}  // namespace podsim

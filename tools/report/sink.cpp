#include "tools/report/sink.hpp"

#include <zlib.h>

#include <algorithm>
#include <array>

#include "sim/base/invariant.hpp"
#include "sim/base/output_file.hpp"

namespace podsim {

namespace {

class PlainSink final : public Sink {
 public:
  explicit PlainSink(OutputFile file) : file_{std::move(file)} {}

  void write(std::string_view bytes) override { file_.write(bytes); }
  [[nodiscard]] bool failed() const override { return file_.failed(); }
  Status finish() override { return file_.finish(); }
  Status close() override { return file_.close(); }

 private:
  OutputFile file_;
};

class GzipSink final : public Sink {
 public:
  explicit GzipSink(OutputFile file) : file_{std::move(file)} {
    constexpr int gzip_wrapper = 16;
    constexpr int memory_level = 8;  // these two as deflateInit() has them
    [[maybe_unused]] int status =
        deflateInit2(&stream_, Z_DEFAULT_COMPRESSION, Z_DEFLATED, MAX_WBITS + gzip_wrapper, memory_level, Z_DEFAULT_STRATEGY);
    PODSIM_ASSERT(status == Z_OK && "there is memory");
    header_.os = 255;  // unknown
    status = deflateSetHeader(&stream_, &header_);
    PODSIM_ASSERT(status == Z_OK);
  }
  ~GzipSink() override { deflateEnd(&stream_); }

  void write(std::string_view bytes) override {
    constexpr std::size_t most = 1U << 30;  // zlib counts in 32 bits
    for (; !bytes.empty(); bytes.remove_prefix(std::min(bytes.size(), most))) deflate_all(bytes.substr(0, most), Z_NO_FLUSH);
  }
  [[nodiscard]] bool failed() const override { return file_.failed(); }
  Status finish() override {
    if (!finished_) deflate_all({}, Z_FINISH);
    finished_ = true;
    return file_.finish();
  }
  Status close() override {
    if (!finished_) deflate_all({}, Z_FINISH);
    return file_.close();
  }

 private:
  void deflate_all(std::string_view bytes, int flush) {
    stream_.next_in = const_cast<Bytef*>(reinterpret_cast<const Bytef*>(bytes.data()));  // NOLINT: zlib's C interface; it is only read
    stream_.avail_in = static_cast<uInt>(bytes.size());
    do {
      stream_.next_out = reinterpret_cast<Bytef*>(out_.data());  // NOLINT
      stream_.avail_out = static_cast<uInt>(out_.size());
      [[maybe_unused]] const int status = deflate(&stream_, flush);
      PODSIM_ASSERT(status != Z_STREAM_ERROR);
      file_.write({out_.data(), out_.size() - stream_.avail_out});
    } while (stream_.avail_out == 0);
  }

  OutputFile file_;
  z_stream stream_{};
  gz_header header_{};  // mtime 0, no name
  bool finished_ = false;
  std::array<char, 1U << 16> out_{};
};

}  // namespace

Expected<std::unique_ptr<Sink>> open_sink(const std::string& path) {
  auto file = OutputFile::open(path);
  if (!file) return file.error();
  if (path.ends_with(".gz")) return std::unique_ptr<Sink>{std::make_unique<GzipSink>(*std::move(file))};
  return std::unique_ptr<Sink>{std::make_unique<PlainSink>(*std::move(file))};
}

}  // namespace podsim

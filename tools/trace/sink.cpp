#include "tools/trace/sink.hpp"

#include <unistd.h>
#include <zlib.h>

#include <array>
#include <cassert>
#include <filesystem>
#include <fstream>

namespace podsim {

namespace {

namespace fs = std::filesystem;

class PlainSink final : public Sink {
 public:
  explicit PlainSink(std::string path) : path_{std::move(path)}, target_{path_} {
    std::error_code none;
    const fs::file_status status = fs::status(path_, none);
    if (fs::exists(status)) target_ = fs::canonical(path_, none);  // a link stays a link
    if (!fs::exists(status) || (fs::is_regular_file(status) && ::access(target_.c_str(), W_OK) == 0)) {
      beside_ = target_.string() + "." + std::to_string(::getpid()) + ".part";
      file_.open(beside_, std::ios::binary | std::ios::trunc);
      if (file_.is_open()) return;
      beside_.clear();
    }
    file_.open(target_, std::ios::binary | std::ios::trunc);
  }
  ~PlainSink() override {
    if (beside_.empty()) return;
    file_.close();
    std::error_code none;
    fs::remove(beside_, none);
  }

  void write(std::string_view bytes) override { file_.write(bytes.data(), static_cast<std::streamsize>(bytes.size())); }
  [[nodiscard]] bool failed() const override { return !file_; }
  Done close() override {
    file_.close();  // sets failbit if the last bytes cannot be written
    std::error_code error;
    if (file_ && !beside_.empty()) fs::rename(beside_, target_, error);
    if (!file_ || error) return cannot_write();
    beside_.clear();
    return done();
  }
  [[nodiscard]] Diagnostic cannot_write() const { return {{path_, 0, 0}, "cannot write the file"}; }

 private:
  std::string path_;
  fs::path target_, beside_;  // beside_: until the file is complete; empty: straight to the target
  std::ofstream file_;
};

class GzipSink final : public Sink {
 public:
  explicit GzipSink(std::unique_ptr<Sink> below) : below_{std::move(below)} {
    constexpr int gzip_wrapper = 16;
    constexpr int memory_level = 8;  // these two as deflateInit() has them
    [[maybe_unused]] int status =
        deflateInit2(&stream_, Z_DEFAULT_COMPRESSION, Z_DEFLATED, MAX_WBITS + gzip_wrapper, memory_level, Z_DEFAULT_STRATEGY);
    assert(status == Z_OK && "there is memory");
    header_.os = 255;  // unknown
    status = deflateSetHeader(&stream_, &header_);
    assert(status == Z_OK);
  }
  ~GzipSink() override { deflateEnd(&stream_); }

  void write(std::string_view bytes) override {
    constexpr std::size_t most = 1U << 30;  // zlib counts in 32 bits
    for (; !bytes.empty(); bytes.remove_prefix(std::min(bytes.size(), most))) deflate_all(bytes.substr(0, most), Z_NO_FLUSH);
  }
  [[nodiscard]] bool failed() const override { return below_->failed(); }
  Done close() override {
    deflate_all({}, Z_FINISH);
    return below_->close();
  }

 private:
  void deflate_all(std::string_view bytes, int flush) {
    stream_.next_in = const_cast<Bytef*>(reinterpret_cast<const Bytef*>(bytes.data()));  // NOLINT: zlib's C interface; it is only read
    stream_.avail_in = static_cast<uInt>(bytes.size());
    do {
      stream_.next_out = reinterpret_cast<Bytef*>(out_.data());  // NOLINT
      stream_.avail_out = static_cast<uInt>(out_.size());
      [[maybe_unused]] const int status = deflate(&stream_, flush);
      assert(status != Z_STREAM_ERROR);
      below_->write({out_.data(), out_.size() - stream_.avail_out});
    } while (stream_.avail_out == 0);
  }

  std::unique_ptr<Sink> below_;
  z_stream stream_{};
  gz_header header_{};  // mtime 0, no name
  std::array<char, 1U << 16> out_{};
};

}  // namespace

Expected<std::unique_ptr<Sink>> open_sink(const std::string& path) {
  auto file = std::make_unique<PlainSink>(path);
  if (file->failed()) return file->cannot_write();
  if (!path.ends_with(".gz")) return std::unique_ptr<Sink>{std::move(file)};
  return std::unique_ptr<Sink>{std::make_unique<GzipSink>(std::move(file))};
}

}  // namespace podsim

#include "sim/config/message_file.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <set>

#include <fmt/format.h>
#include <google/protobuf/descriptor.h>
#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/tokenizer.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <google/protobuf/message.h>
#include <google/protobuf/stubs/logging.h>
#include <google/protobuf/text_format.h>
#include <google/protobuf/unknown_field_set.h>

#include "sim/base/utf8.hpp"

namespace podsim {
namespace {

namespace pb = google::protobuf;

constexpr std::size_t most_problems = 20;
constexpr int deepest_message = 32;  // our messages nest 8 deep

constexpr std::size_t length_bytes = 8, checksum_bytes = 4, length_at = binary_magic.size() + 1, checksum_at = length_at + length_bytes;

std::uint64_t little_endian(std::string_view bytes) {
  std::uint64_t number = 0;
  for (std::size_t i = 0; i < bytes.size(); ++i) number |= static_cast<std::uint64_t>(static_cast<unsigned char>(bytes[i])) << (8 * i);
  return number;
}

// ---- Bytes ----------------------------------------------------------------------------------------------------------------------------

SourceLocation location_of(const std::string& file, std::string_view text, std::size_t offset) {
  const std::string_view before = text.substr(0, offset);
  const std::size_t newline = before.rfind('\n');
  const std::size_t line_begin = newline == std::string_view::npos ? 0 : newline + 1;
  return {file, static_cast<int>(std::count(before.begin(), before.end(), '\n')) + 1, static_cast<int>(offset - line_begin) + 1};
}

// ---- Protobuf's messages about text ---------------------------------------------------------------------------------------------------
//
// Protobuf 3.21 tells what is wrong with a text as a line, a column and an English sentence (io::ErrorCollector); it has no other form, and no hook for
// unknown fields. So these sentences are read here, and nowhere else. bad_input_test has each of them; one that another version words otherwise stays as it is.

/// The first text in quotes, and what follows it.
struct Quote {
  std::string_view word, rest;
};
std::optional<Quote> quote_in(std::string_view message) {
  const std::size_t open = message.find('"');
  if (open == std::string_view::npos) return std::nullopt;
  const std::size_t close = message.find('"', open + 1);
  if (close == std::string_view::npos) return std::nullopt;
  return Quote{message.substr(open + 1, close - open - 1), message.substr(close + 1)};
}

bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

/// The last occurrence of `word` as a whole word before `end`. Protobuf reports some errors at the token behind the wrong one.
std::optional<std::size_t> last_word(std::string_view text, std::string_view word, std::size_t end) {
  for (std::size_t at = text.substr(0, end).rfind(word); at != std::string_view::npos;
       at = at == 0 ? std::string_view::npos : text.rfind(word, at - 1)) {
    const std::size_t behind = at + word.size();
    if ((at == 0 || !is_word(text[at - 1])) && (behind >= text.size() || !is_word(text[behind])) && behind <= end) return at;
  }
  return std::nullopt;
}

/// The names of the values of every enumeration that a field of this name has.
void enum_values(const pb::Descriptor& message, std::string_view field_name, std::set<const void*>& seen, std::vector<std::string>& names) {
  if (!seen.insert(&message).second) return;
  for (int f = 0; f < message.field_count(); ++f) {
    const pb::FieldDescriptor& field = *message.field(f);
    if (field.enum_type() != nullptr && field.name() == field_name && seen.insert(field.enum_type()).second)
      for (int v = 0; v < field.enum_type()->value_count(); ++v) names.push_back(field.enum_type()->value(v)->name());
    if (field.message_type() != nullptr) enum_values(*field.message_type(), field_name, seen, names);
  }
}

struct TextError {
  int line = 0, column = 0;  // from 0, as Protobuf counts; a tab advances to a multiple of 8
  std::string message;
};

std::size_t offset_of(std::string_view text, const TextError& error) {
  std::size_t begin = 0;
  for (int line = 0; line < error.line; ++line) {
    const std::size_t newline = text.find('\n', begin);
    if (newline == std::string_view::npos) return text.size();
    begin = newline + 1;
  }
  int column = 0;
  while (begin < text.size() && column < error.column && text[begin] != '\n') column += text[begin++] == '\t' ? 8 - column % 8 : 1;
  return begin;
}

/// Protobuf's message in our words, where it stands for a name that may be mistyped.
Diagnostic translate(const TextError& error, const std::string& file, std::string_view text, const pb::Descriptor& root) {
  Diagnostic result{{file, error.line + 1, error.column + 1}, error.message};
  if (text.find('\t') != std::string_view::npos) result.where = location_of(file, text, offset_of(text, error));
  const auto blame = [&](std::string_view word) {
    if (const auto at = last_word(text, word, offset_of(text, error))) result.where = location_of(file, text, *at);
  };
  if (error.message.starts_with("Message type \"")) {
    const std::optional<Quote> type = quote_in(error.message);
    const std::optional<Quote> name = type ? quote_in(type->rest) : std::nullopt;
    const pb::Descriptor* message = name ? root.file()->pool()->FindMessageTypeByName(std::string(type->word)) : nullptr;
    if (message == nullptr) return result;
    std::vector<std::string> fields;
    for (int f = 0; f < message->field_count(); ++f) fields.push_back(message->field(f)->name());
    const std::string near = did_you_mean(name->word, fields);
    result.message =
        fmt::format("unknown field {}{}", quoted(name->word), near.empty() ? fmt::format(", expected one of {}", fmt::join(fields, ", ")) : near);
    blame(name->word);
  } else if (error.message.starts_with("Unknown enumeration value of \"")) {
    const std::optional<Quote> value = quote_in(error.message);
    const std::optional<Quote> field = value ? quote_in(value->rest) : std::nullopt;
    if (!field) return result;
    std::set<const void*> seen;
    std::vector<std::string> values;
    enum_values(root, field->word, seen, values);
    const std::string near = did_you_mean(value->word, values);
    result.message = fmt::format("unknown value {} of {}{}", quoted(value->word), field->word,
                                 near.empty() ? fmt::format(", expected one of {}", fmt::join(values, ", ")) : near);
    blame(value->word);
  } else if (error.message.starts_with("Non-repeated field \"")) {
    if (const std::optional<Quote> name = quote_in(error.message)) {
      result.message = fmt::format("{} is given twice", name->word);
      blame(name->word);
    }
  } else if (error.message.starts_with("Invalid value for boolean field \"")) {
    const std::optional<Quote> field = quote_in(error.message);
    const std::optional<Quote> value = field ? quote_in(field->rest) : std::nullopt;
    if (!value) return result;
    result.message = fmt::format("expected true or false, found {}", quoted(value->word));
    blame(value->word);
  } else if (error.message.ends_with("got: ")) {
    result.message += "the end of the file";
  }
  return result;
}

/// The first error; Protobuf stops there. Warnings are of no interest.
class FirstError final : public pb::io::ErrorCollector {
 public:
  void AddError(int line, int column, const std::string& message) override {
    if (!error_) error_ = TextError{std::max(line, 0), std::max(column, 0), message};
  }
  void AddWarning(int, int, const std::string&) override {}
  [[nodiscard]] const std::optional<TextError>& error() const { return error_; }

 private:
  std::optional<TextError> error_;
};

bool parse_textproto(std::string_view text, pb::Message& message, FirstError& errors, pb::TextFormat::ParseInfoTree* locations) {
  pb::TextFormat::Parser parser;
  parser.RecordErrorsTo(&errors);
  parser.WriteLocationsTo(locations);
  parser.SetRecursionLimit(deepest_message);
  parser.AllowPartialMessage(true);  // what is missing is told with its place by check()
  pb::io::ArrayInputStream input(text.data(), static_cast<int>(text.size()));
  return parser.Parse(&input, &message);
}

std::optional<int> version_of(const pb::Message& message) {
  const pb::FieldDescriptor* field = message.GetDescriptor()->FindFieldByName("format_version");
  if (!message.GetReflection()->HasField(message, field)) return std::nullopt;
  return message.GetReflection()->GetInt32(message, field);
}

}  // namespace

struct MessageFile::Locations {
  pb::TextFormat::ParseInfoTree root;
};

MessageFile::MessageFile(const FileFormat& format, std::string file, pb::Message& message)
    : format_{format}, file_{std::move(file)}, message_{message} {}
MessageFile::~MessageFile() = default;

bool MessageFile::parse(std::string_view bytes) {
  const bool binary = !bytes.empty() && bytes[0] == binary_magic[0];
  if (!(binary ? parse_binary(bytes) : parse_text(bytes))) return false;
  if (!check_version()) return false;
  check(message_, Place{});
  return ok();
}

bool MessageFile::parse_text(std::string_view text) {
  if (text.find_first_not_of(" \t\r\n") == std::string_view::npos) {
    problem(Diagnostic{{file_, 0, 0}, fmt::format("expected {}, found an empty file", format_.noun)});
    return false;
  }
  if (const std::optional<std::size_t> at = first_non_text(text)) {
    const unsigned byte = static_cast<unsigned char>(text[*at]);
    problem(Diagnostic{location_of(file_, text, *at),
                       fmt::format("expected {} as textproto, found the byte 0x{:02x}, which is not text", format_.noun, byte)});
    return false;
  }
  if (text.size() > static_cast<std::size_t>(std::numeric_limits<int>::max())) {
    problem(Diagnostic{{file_, 0, 0}, fmt::format("expected less than 2 GiB, found {} bytes", text.size())});
    return false;
  }
  text_ = text;
  FirstError errors;
  if (parse_textproto(text, message_, errors, nullptr)) return true;

  // A newer version may well have fields that this one does not know, so its number comes first: it stands before them.
  if (const std::optional<int> version = version_of(message_); version && *version > format_.version) return check_version();
  problem(translate(errors.error().value_or(TextError{0, 0, "malformed text"}), file_, text, *message_.GetDescriptor()));
  return false;
}

bool MessageFile::parse_binary(std::string_view bytes) {
  const auto fail = [&](std::string message) {
    problem(Diagnostic{{file_, 0, 0}, std::move(message)});
    return false;
  };
  if (!bytes.starts_with(binary_magic) && !binary_magic.starts_with(bytes))
    return fail(fmt::format("expected {}, found an unknown binary file", format_.noun));
  if (format_.tag == 0) return fail(fmt::format("expected {} as textproto, found a binary file", format_.noun));
  const std::size_t header_bytes = checksum_at + (format_.checked ? checksum_bytes : 0);
  if (bytes.size() < header_bytes) return fail(fmt::format("cut short: expected a header of {} bytes, found {}", header_bytes, bytes.size()));
  if (bytes[binary_magic.size()] != format_.tag) return fail(fmt::format("expected {}, found a binary file of another kind", format_.noun));
  const std::uint64_t length = little_endian(bytes.substr(length_at, length_bytes));
  const std::string_view payload = bytes.substr(header_bytes);
  if (payload.size() < length) return fail(fmt::format("cut short: expected {} bytes behind the header, found {}", length, payload.size()));
  if (payload.size() > length) return fail(fmt::format("expected {} bytes behind the header, found {}", length, payload.size()));
  if (payload.size() > static_cast<std::size_t>(std::numeric_limits<int>::max()))
    return fail(fmt::format("expected less than 2 GiB, found {} bytes", length));
  if (format_.checked) {
    const std::uint64_t expected = little_endian(bytes.substr(checksum_at, checksum_bytes)), found = checksum_of(payload);
    if (found != expected)
      return fail(fmt::format("damaged: expected bytes with the checksum {:08x} behind the header, found {:08x}", expected, found));
  }

  const pb::LogSilencer quiet;  // generated code prints its opinion of strings that are not UTF-8; check() reports them
  pb::io::CodedInputStream input(reinterpret_cast<const std::uint8_t*>(payload.data()), static_cast<int>(payload.size()));
  input.SetRecursionLimit(deepest_message);
  if (!message_.ParsePartialFromCodedStream(&input) || !input.ConsumedEntireMessage())
    return fail(fmt::format("malformed binary form of {}", format_.noun));
  return true;
}

bool MessageFile::check_version() {
  const std::optional<int> version = version_of(message_);
  if (!version) {
    problem(Place{}, fmt::format("format_version is missing; this program reads {}", format_.version));
  } else if (*version > format_.version) {
    problem(Place{}.at("format_version"), fmt::format("format_version {} is newer than what this program reads, {}", *version, format_.version));
  } else if (*version < 1) {
    problem(Place{}.at("format_version"), fmt::format("format_version must be at least 1, got {}", *version));
  }
  return ok();
}

void MessageFile::check(const pb::Message& message, const Place& place) {
  const pb::Reflection& reflection = *message.GetReflection();
  const pb::UnknownFieldSet& unknown = reflection.GetUnknownFields(message);
  if (!unknown.empty()) problem(place, fmt::format("unknown field or value of field number {}", unknown.field(0).number()));

  const pb::Descriptor& descriptor = *message.GetDescriptor();
  for (int f = 0; f < descriptor.field_count(); ++f) {
    const pb::FieldDescriptor& field = *descriptor.field(f);
    const bool repeated = field.is_repeated();
    if (field.is_required() && !reflection.HasField(message, &field)) {
      problem(place, fmt::format("{} is missing{}{}", field.name(), place.field != nullptr ? " in " : "", place.field != nullptr ? place.field : ""));
      continue;
    }
    const int entries = repeated ? reflection.FieldSize(message, &field) : reflection.HasField(message, &field) ? 1 : 0;
    for (int i = 0; i < entries; ++i) {
      const Place here = place.at(field.name().c_str(), repeated ? i : -1);
      switch (field.cpp_type()) {
        case pb::FieldDescriptor::CPPTYPE_MESSAGE:
          check(repeated ? reflection.GetRepeatedMessage(message, &field, i) : reflection.GetMessage(message, &field), here);
          break;
        case pb::FieldDescriptor::CPPTYPE_STRING: {
          const std::string text = repeated ? reflection.GetRepeatedString(message, &field, i) : reflection.GetString(message, &field);
          if (first_non_text(text)) problem(here, fmt::format("{} must be text in UTF-8 without NUL, got {}", field.name(), quoted(text)));
          break;
        }
        case pb::FieldDescriptor::CPPTYPE_DOUBLE: {
          const double value = repeated ? reflection.GetRepeatedDouble(message, &field, i) : reflection.GetDouble(message, &field);
          if (!std::isfinite(value)) problem(here, fmt::format("{} must be a finite number, got {}", field.name(), value));
          break;
        }
        default: break;
      }
    }
  }
}

// ---- Problems -------------------------------------------------------------------------------------------------------------------------

namespace {

/// From the root to the place, without the root itself.
std::vector<const Place*> way_to(const Place& place) {
  std::vector<const Place*> way;
  for (const Place* step = &place; step != nullptr && step->field != nullptr; step = step->parent) way.push_back(step);
  std::reverse(way.begin(), way.end());
  return way;
}

}  // namespace

SourceLocation MessageFile::where(const Place& place) const {
  SourceLocation location{file_, 0, 0};
  if (text_.empty()) return location;
  if (!locations_) {
    locations_ = std::make_unique<Locations>();
    const std::unique_ptr<pb::Message> scratch(message_.New());
    FirstError ignored;  // a text that did not parse has locations up to there
    parse_textproto(text_, *scratch, ignored, &locations_->root);
  }
  const bool has_tabs = text_.find('\t') != std::string_view::npos;  // which Protobuf counts to a multiple of 8 columns
  // What is missing stands where the message stands that lacks it.
  const pb::Descriptor* message = message_.GetDescriptor();
  const pb::TextFormat::ParseInfoTree* tree = &locations_->root;
  for (const Place* step : way_to(place)) {
    const pb::FieldDescriptor* field = message->FindFieldByName(step->field);
    pb::TextFormat::ParseLocation found = tree->GetLocation(field, step->index);
    if (found.line < 0 && field->is_packed()) found = tree->GetLocation(field, 0);  // a list in brackets has one place
    if (found.line < 0) break;
    location.line = found.line + 1;
    location.column = found.column + 1;
    if (has_tabs) location.column = location_of(file_, text_, offset_of(text_, {found.line, found.column, ""})).column;
    message = field->message_type();
    if (message == nullptr) break;
    tree = tree->GetTreeForNested(field, step->index);
    if (tree == nullptr) break;
  }
  return location;
}

std::string MessageFile::path_of(const Place& place) const {
  std::string path;
  for (const Place* step : way_to(place)) {
    if (!path.empty()) path += '.';
    path += step->field;
    if (step->index >= 0) path += fmt::format("[{}]", step->index);
  }
  return path;
}

bool MessageFile::full() const { return problems_.size() >= most_problems; }

void MessageFile::problem(const Place& place, std::string_view message) {
  if (full()) {
    ++count_;
    return;
  }
  const std::string path = text_.empty() ? path_of(place) : "";
  problem(Diagnostic{where(place), fmt::format("{}{}{}", path, path.empty() ? "" : ": ", message)});
}

void MessageFile::problem(Diagnostic diagnostic) {
  ++count_;
  if (!full()) problems_.push_back(std::move(diagnostic));
}

Diagnostic MessageFile::error() const {
  std::vector<Diagnostic> sorted = problems_;
  std::stable_sort(sorted.begin(), sorted.end(), [](const Diagnostic& a, const Diagnostic& b) {
    return std::tie(a.where.line, a.where.column) < std::tie(b.where.line, b.where.column);
  });
  Diagnostic all = sorted.at(0);
  for (std::size_t i = 1; i < sorted.size(); ++i) all.message += '\n' + to_text(sorted[i]);
  const int more = count_ - static_cast<int>(sorted.size());
  if (more > 0) all.message += fmt::format("\n{}: and {} more", file_, more);
  return all;
}

}  // namespace podsim

#include "tools/report/json_problem.hpp"

#include <fmt/format.h>
#include <simdjson.h>

#include <algorithm>

#include "sim/base/text.hpp"

namespace podsim {

namespace {

/// The place of a byte of a text.
SourceLocation place(std::string_view text, std::size_t byte, const std::string& file) {
  const std::string_view before = text.substr(0, byte);
  const std::size_t line = before.rfind('\n');
  return {file, static_cast<int>(std::ranges::count(before, '\n')) + 1,
          static_cast<int>(line == std::string_view::npos ? before.size() : before.size() - line - 1) + 1};
}

namespace lazy = simdjson::ondemand;

/// Looks at every value until one cannot be read.
simdjson::error_code read_through(lazy::value value, int depth = 0) {
  constexpr int deepest = 1024;  // simdjson's own limit, by default
  lazy::json_type type{};
  if (const auto error = value.type().get(type)) return error;
  if (depth == deepest) return simdjson::DEPTH_ERROR;
  if (type == lazy::json_type::object) {
    lazy::object fields;
    if (const auto error = value.get_object().get(fields)) return error;
    for (auto field : fields) {
      std::string_view key;
      lazy::value inner;
      if (const auto error = field.unescaped_key().get(key)) return error;
      if (const auto error = field.value().get(inner)) return error;
      if (const auto error = read_through(inner, depth + 1)) return error;
    }
    return simdjson::SUCCESS;
  }
  if (type == lazy::json_type::array) {
    lazy::array elements;
    if (const auto error = value.get_array().get(elements)) return error;
    for (auto element : elements) {
      lazy::value inner;
      if (const auto error = element.get(inner)) return error;
      if (const auto error = read_through(inner, depth + 1)) return error;
    }
    return simdjson::SUCCESS;
  }
  std::string_view text;
  double number = 0;
  bool truth = false;
  switch (type) {
    case lazy::json_type::string: return value.get_string().get(text);
    case lazy::json_type::number: return value.get_double().get(number);
    case lazy::json_type::boolean: return value.get_bool().get(truth);
    default: return value.is_null().get(truth);
  }
}

/// Where the parser of whole documents, which does not tell, found `error`; its size where it ends too early, nothing where it is not known.
std::optional<std::size_t> place_of(simdjson::error_code error, const simdjson::padded_string& text) {
  if (error == simdjson::EMPTY || error == simdjson::UNCLOSED_STRING) return text.size();
  if (error == simdjson::UTF8_ERROR || error == simdjson::DEPTH_ERROR) return std::nullopt;
  lazy::parser parser;
  lazy::document document;
  lazy::value root;
  if (parser.iterate(text).get(document) != simdjson::SUCCESS || document.get_value().get(root) != simdjson::SUCCESS) return std::nullopt;
  const auto found = read_through(root);
  if (error == simdjson::TAPE_ERROR && found == simdjson::NUMBER_ERROR) return text.size();  // the last bytes are a number, which could go on
  const char* at = nullptr;
  if (document.current_location().get(at) != simdjson::SUCCESS || at < text.data() || at > text.data() + text.size()) return std::nullopt;
  return static_cast<std::size_t>(at - text.data());
}

Diagnostic no_json(simdjson::error_code error, const simdjson::padded_string& text, const std::string& file) {
  const std::optional<std::size_t> byte = place_of(error, text);
  if (!byte) return {{file, 1, 1}, fmt::format("this is no JSON of a run: {}", simdjson::error_message(error))};
  const std::string_view all{text};
  return {place(all, *byte, file), *byte >= all.size() ? "expected the rest of a JSON object, found the end of the file"
                                                       : "this is no JSON: found " + quoted(all.substr(*byte, 1))};
}

}  // namespace

std::optional<Diagnostic> problem_in_json(std::string_view text, const std::string& file) {
  const simdjson::padded_string padded{text};
  simdjson::dom::parser parser;
  if (const auto error = parser.parse(padded).error()) return no_json(error, padded, file);
  return std::nullopt;
}

}  // namespace podsim

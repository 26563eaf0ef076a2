#include "workloads/training/yaml_entries.hpp"

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/parser.h>

#include <algorithm>
#include <optional>
#include <set>
#include <sstream>

namespace podsim {

namespace {

constexpr int deepest_yaml = 64;

/// Thrown out of a handler to leave the parser; never leaves this file.
struct Unwanted {
  YAML::Mark mark;
  std::string message;
};

/// Behind the first document.
class NoFurther final : public YAML::EventHandler {
 public:
  void OnDocumentStart(const YAML::Mark& mark) override { throw Unwanted{mark, "expected one document, found another"}; }
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark& /*mark*/, YAML::anchor_t /*anchor*/) override {}
  void OnAlias(const YAML::Mark& /*mark*/, YAML::anchor_t /*anchor*/) override {}
  void OnScalar(const YAML::Mark& /*mark*/, const std::string& /*tag*/, YAML::anchor_t /*anchor*/, const std::string& /*value*/) override {}
  void OnSequenceStart(const YAML::Mark& /*mark*/, const std::string& /*tag*/, YAML::anchor_t /*anchor*/, YAML::EmitterStyle::value /*style*/) override {}
  void OnSequenceEnd() override {}
  void OnMapStart(const YAML::Mark& /*mark*/, const std::string& /*tag*/, YAML::anchor_t /*anchor*/, YAML::EmitterStyle::value /*style*/) override {}
  void OnMapEnd() override {}
};

/// Collects the entries of one document.
class Collector final : public YAML::EventHandler {
 public:
  Collector(std::string file, std::size_t most_entries) : file_{std::move(file)}, most_entries_{most_entries} {}

  [[nodiscard]] SourceLocation at(const YAML::Mark& mark) const { return {file_, mark.line + 1, mark.column + 1}; }
  [[nodiscard]] bool is_mapping() const { return mapping_; }
  [[nodiscard]] std::vector<YamlEntry>& entries() { return entries_; }
  /// The root, where it is no mapping.
  [[nodiscard]] std::optional<YamlValue>& root() { return root_; }

  void OnDocumentStart(const YAML::Mark& /*mark*/) override {}
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override { take(mark, anchor, "", false, true); }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t /*anchor*/) override { throw Unwanted{mark, "expected no alias"}; }
  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor, const std::string& value) override {
    if (tag != "?" && tag != "!" && !tag.empty()) throw Unwanted{mark, "expected no tag, found " + quoted(tag)};
    take(mark, anchor, value, tag == "!", false);
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor, YAML::EmitterStyle::value /*style*/) override {
    begin(mark, tag, anchor, YamlValue::Kind::list);
  }
  void OnSequenceEnd() override { end(); }
  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor, YAML::EmitterStyle::value /*style*/) override {
    if (depth_ == 0) {
      check(mark, tag, anchor);
      mapping_ = true;
      depth_ = 1;
      return;
    }
    begin(mark, tag, anchor, YamlValue::Kind::other);
  }
  void OnMapEnd() override { end(); }

 private:
  static void check(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor) {
    if (anchor != 0) throw Unwanted{mark, "expected no anchor"};
    if (tag != "?" && !tag.empty()) throw Unwanted{mark, "expected no tag, found " + quoted(tag)};
  }
  [[nodiscard]] bool wants_key() const { return mapping_ && depth_ == 1 && !key_; }
  YamlValue& value_here() {
    if (!mapping_) return root_ ? *root_ : root_.emplace();
    return entries_.back().value;
  }

  void take(const YAML::Mark& mark, YAML::anchor_t anchor, const std::string& text, bool is_quoted, bool null) {
    if (anchor != 0) throw Unwanted{mark, "expected no anchor"};
    if (wants_key()) {
      if (null) throw Unwanted{mark, "expected a key, found none"};
      if (!keys_.insert(text).second) throw Unwanted{mark, "expected every key once, found " + quoted(text) + " again"};
      if (entries_.size() >= most_entries_) throw Unwanted{mark, most_entries_ == 0 ? "expected a scalar or a list, found a mapping" : "expected fewer keys"};
      key_ = true;
      entries_.push_back({text, {}, at(mark)});
      return;
    }
    YamlValue& value = value_here();
    if (depth_ > (mapping_ ? 1 : 0)) {
      if (value.kind == YamlValue::Kind::list) value.items.push_back(text);
      return;
    }
    value = {YamlValue::Kind::scalar, text, is_quoted, {}, at(mark)};
    key_ = false;
  }

  void begin(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor, YamlValue::Kind kind) {
    check(mark, tag, anchor);
    if (wants_key()) throw Unwanted{mark, "expected a key, found a list or a mapping"};
    if (depth_ >= deepest_yaml) throw Unwanted{mark, "expected less nesting"};
    YamlValue& value = value_here();
    if (depth_ == (mapping_ ? 1 : 0))
      value = {kind, "", false, {}, at(mark)};
    else
      value.kind = YamlValue::Kind::other;
    ++depth_;
  }
  void end() {
    --depth_;
    if (mapping_ && depth_ == 1) key_ = false;
  }

  std::string file_;
  std::size_t most_entries_;
  std::vector<YamlEntry> entries_;
  std::set<std::string> keys_;
  std::optional<YamlValue> root_;
  int depth_ = 0;  // of open lists and mappings
  bool mapping_ = false, key_ = false;  // whether the root is a mapping, and a key waits for its value
};

/// Runs the parser over a text.
Status collect(std::string_view text, Collector& collector) {
  if (text.size() > yaml_limit) return Diagnostic{collector.at({}), "expected at most " + std::to_string(yaml_limit) + " bytes of YAML, found " + std::to_string(text.size())};
  try {
    std::istringstream stream{std::string{text}};
    YAML::Parser parser{stream};
    if (!parser.HandleNextDocument(collector)) return Diagnostic{collector.at({}), "expected a mapping of keys to values, found nothing"};
    NoFurther rest;
    if (parser) parser.HandleNextDocument(rest);
    return success();
  } catch (const Unwanted& unwanted) {
    return Diagnostic{collector.at(unwanted.mark), unwanted.message};
  } catch (const YAML::Exception& error) {
    std::string message = error.msg;  // may hold a byte of the file
    std::replace_if(message.begin(), message.end(), [](char c) { return c < ' ' || c > '~'; }, '?');
    return Diagnostic{collector.at(error.mark.is_null() ? YAML::Mark{} : error.mark), "expected YAML: " + message};
  }
}

}  // namespace

Expected<std::vector<YamlEntry>> read_yaml(std::string_view text, const std::string& file) {
  constexpr std::size_t most_entries = 10'000;
  Collector collector{file, most_entries};
  if (auto ok = collect(text, collector); !ok) return ok.error();
  if (!collector.is_mapping()) return Diagnostic{collector.root() ? collector.root()->where : SourceLocation{file, 1, 1}, "expected a mapping of keys to values, found a scalar or a list"};
  return std::move(collector.entries());
}

Expected<YamlValue> read_yaml_value(std::string_view text, const SourceLocation& where) {
  if (text.empty()) return YamlValue{YamlValue::Kind::scalar, "", false, {}, where};
  Collector collector{where.file, 0};
  const auto placed = [&](SourceLocation found) {
    return SourceLocation{where.file, where.line + found.line - 1, found.line == 1 ? where.column + found.column - 1 : found.column};
  };
  if (auto ok = collect(text, collector); !ok) return Diagnostic{placed(ok.error().where), ok.error().message};
  if (!collector.root()) return Diagnostic{where, "expected a scalar or a list, found " + quoted(text)};
  YamlValue value = std::move(*collector.root());
  value.where = placed(value.where);
  return value;
}

}  // namespace podsim

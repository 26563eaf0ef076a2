#include "sim/config/text_places.hpp"

#include <google/protobuf/io/tokenizer.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>

#include <algorithm>

namespace podsim {

namespace {

namespace pb = google::protobuf;

class NoErrors final : public pb::io::ErrorCollector {
  void AddError(int, int, const std::string&) override {}
};

/// Follows the braces of a textproto. A field is `name: value`, `name { ... }` or `name: [value, ...]`; < > may stand for { }.
class PlaceReader {
 public:
  PlaceReader(std::string_view text, std::string_view outer, const std::vector<std::string_view>& inner)
      : outer_{outer}, inner_{inner}, input_{text.data(), static_cast<int>(text.size())}, tokens_{&input_, &errors_} {
    tokens_.set_comment_style(pb::io::Tokenizer::SH_COMMENT_STYLE);
    tokens_.set_allow_f_after_float(true);
    tokens_.set_require_space_after_number(false);
  }

  std::vector<PlacesInEntry> read() {
    while (tokens_.Next()) {
      const pb::io::Tokenizer::Token& token = tokens_.current();
      if (token.type == pb::io::Tokenizer::TYPE_SYMBOL) {
        symbol(token.text.front());
      } else if (token.type == pb::io::Tokenizer::TYPE_IDENTIFIER && at_a_name_) {
        name(token);
      } else {
        at_a_name_ = true;  // behind a value
      }
    }
    return std::move(entries_);
  }

 private:
  struct Level {
    std::string field;  // whose value this is
    TextPlace place;
    bool list = false;
  };

  void name(const pb::io::Tokenizer::Token& token) {
    field_ = token.text;
    place_ = {token.line + 1, token.column + 1};
  }

  void symbol(char c) {
    if (c == ':') at_a_name_ = false;
    if (c == '{' || c == '<') open();
    if (c == '[') levels_.push_back({field_, place_, true});
    if (c == '}' || c == '>' || c == ']') levels_.pop_back();
    if (c != ':' && c != '-') at_a_name_ = true;
  }

  /// A message: of a list, each with the name and place of the list's field.
  void open() {
    const bool listed = !levels_.empty() && levels_.back().list;
    if (listed) field_ = levels_.back().field;
    const auto depth = std::count_if(levels_.begin(), levels_.end(), [](const Level& level) { return !level.list; });
    if (depth == 0 && field_ == outer_) entries_.emplace_back();
    if (depth == 1 && outermost() == outer_ && std::find(inner_.begin(), inner_.end(), field_) != inner_.end())
      entries_.back()[field_].push_back(listed ? TextPlace{tokens_.current().line + 1, tokens_.current().column + 1} : place_);
    levels_.push_back({field_, place_, false});
  }
  const std::string& outermost() const { return levels_.front().field; }

  std::string_view outer_;
  const std::vector<std::string_view>& inner_;
  NoErrors errors_;
  pb::io::ArrayInputStream input_;
  pb::io::Tokenizer tokens_;
  std::vector<Level> levels_;
  std::vector<PlacesInEntry> entries_;
  std::string field_;  // the last name
  TextPlace place_;
  bool at_a_name_ = true;
};

}  // namespace

std::vector<PlacesInEntry> places_in(std::string_view text, std::string_view outer, const std::vector<std::string_view>& inner) {
  return PlaceReader{text, outer, inner}.read();
}

}  // namespace podsim

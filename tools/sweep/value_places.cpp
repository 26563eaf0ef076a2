#include "tools/sweep/value_places.hpp"

#include <google/protobuf/io/tokenizer.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>

namespace podsim {

namespace {

namespace pb = google::protobuf;

/// The text has been parsed, so nobody needs to hear of its errors.
class Silence : public pb::io::ErrorCollector {
 public:
  void AddError(int /*line*/, int /*column*/, const std::string& /*message*/) override {}
};

/// Walks the tokens as TextFormat does, as far as our messages need: no extensions, no Any.
class Walk {
 public:
  Walk(std::string_view text, const std::string& file) : text_{text}, input_{text.data(), static_cast<int>(text.size())}, file_{file} {
    tokens_.set_comment_style(pb::io::Tokenizer::SH_COMMENT_STYLE);
    tokens_.set_allow_multiline_strings(true);
    tokens_.set_require_space_after_number(false);
    tokens_.Next();
  }

  void message(PlacedMessage& into) {
    while (!at_end() && !is("}") && !is(">")) {
      const SourceLocation where = here();
      const std::string field = tokens_.current().text;
      tokens_.Next();
      take(":");
      if (take("[")) {
        while (!at_end() && !take("]")) {
          value(into, field, here());
          take(",");
        }
      } else {
        value(into, field, is("{") || is("<") ? where : here());
      }
      if (!take(",")) take(";");
    }
  }

 private:
  void value(PlacedMessage& into, const std::string& field, const SourceLocation& where) {
    if (take("{") || take("<")) {
      PlacedMessage& inner = into.messages[field].emplace_back();
      inner.where = where;
      message(inner);
      tokens_.Next();
      return;
    }
    into.values[field].push_back(where);
    take("-");
    // Texts that stand beside each other are one.
    const auto type = tokens_.current().type;
    do tokens_.Next();
    while (type == pb::io::Tokenizer::TYPE_STRING && tokens_.current().type == type);
  }

  [[nodiscard]] bool at_end() { return tokens_.current().type == pb::io::Tokenizer::TYPE_END; }
  [[nodiscard]] bool is(std::string_view symbol) { return tokens_.current().text == symbol; }
  bool take(std::string_view symbol) {
    if (!is(symbol)) return false;
    tokens_.Next();
    return true;
  }
  /// Protobuf counts a tab to a multiple of 8 columns. Tokens come in order, so each byte is looked at once.
  [[nodiscard]] SourceLocation here() {
    const int line = tokens_.current().line, column = tokens_.current().column;
    if (line != line_) {
      for (; line_ < line; ++line_) at_ = text_.find('\n', at_) + 1;
      line_begin_ = at_;
      column_ = 0;
    }
    for (; column_ < column && at_ < text_.size() && text_[at_] != '\n'; ++at_) column_ += text_[at_] == '\t' ? 8 - column_ % 8 : 1;
    return {file_, line + 1, static_cast<int>(at_ - line_begin_) + 1};
  }

  std::string_view text_;
  int line_ = 0, column_ = 0;  // of at_, as Protobuf counts
  std::size_t at_ = 0, line_begin_ = 0;
  Silence silence_;
  pb::io::ArrayInputStream input_;
  pb::io::Tokenizer tokens_{&input_, &silence_};
  const std::string& file_;
};

}  // namespace

PlacedMessage places_of(std::string_view text, const std::string& file) {
  PlacedMessage root;
  root.where = {file, 1, 1};
  Walk{text, file}.message(root);
  return root;
}

}  // namespace podsim

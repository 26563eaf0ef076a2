// The values of constants.
#include <charconv>
#include <cmath>
#include <limits>

#include "workloads/hlo/hlo_statement.hpp"

namespace podsim {

namespace {

constexpr std::size_t most_numbers = std::size_t{1} << 20;

class LiteralText {
 public:
  LiteralText(HloCursor& cursor, const HloShape& shape, HloLiteral& literal)
      : cursor_{cursor}, shape_{shape}, literal_{literal}, begin_{cursor.at()} {}

  Status read() {
    const std::size_t begin = begin_;
    if (!shape_.is_array()) return skip(HloLiteral::Kind::unread);
    const std::int64_t elements = elements_of(shape_);
    if (elements > static_cast<std::int64_t>(most_numbers)) return skip(HloLiteral::Kind::unread);
    literal_.kind = HloLiteral::Kind::values;
    std::int64_t count = 0, open = 0;
    while (true) {
      cursor_.skip_blanks();
      if (cursor_.ended()) return cursor_.expected("\")\" behind a constant");
      if (cursor_.take('{')) {
        ++open;
      } else if (cursor_.take('}')) {
        if (--open < 0) return cursor_.expected("as many \"{\" as \"}\" before this");
      } else if (cursor_.peek() == ')') {
        break;
      } else if (!cursor_.take(',')) {
        const std::size_t at = cursor_.at();
        if (cursor_.take("...")) return skip(HloLiteral::Kind::elided);
        if (count == elements) return cursor_.expected(std::to_string(elements) + " values of a constant, and nothing behind them");
        if (!read_value()) return cursor_.expected_at(at, "a value of type " + std::string{name_of(shape_.type)});
        ++count;
      }
    }
    if (open != 0) return cursor_.expected("as many \"}\" as \"{\"");
    if (count != elements)
      return Diagnostic{cursor_.where(begin), "expected " + std::to_string(elements) + " values of a constant, got " + std::to_string(count)};
    return success();
  }

 private:
  Status skip(HloLiteral::Kind kind) {
    literal_ = {};
    literal_.kind = kind;
    // From the opening bracket of constant( to before its closing one.
    cursor_.move_to(begin_ - 1);
    if (!cursor_.take_balanced()) return cursor_.expected("\")\" behind a constant");
    cursor_.move_to(cursor_.at() - 1);
    return success();
  }

  bool read_value() {
    if (is_integer(shape_.type)) return read_integer();
    if (!is_complex(shape_.type)) return read_real();
    if (!cursor_.take('(')) return false;
    cursor_.skip_spaces();
    if (!read_real()) return false;
    cursor_.skip_spaces();
    if (!cursor_.take(',')) return false;
    cursor_.skip_spaces();
    if (!read_real()) return false;
    cursor_.skip_spaces();
    return cursor_.take(')');
  }

  bool read_integer() {
    if (cursor_.take("true")) return literal_.integers.push_back(1), true;
    if (cursor_.take("false")) return literal_.integers.push_back(0), true;
    if (const auto value = cursor_.take_integer()) return literal_.integers.push_back(*value), true;
    std::uint64_t large = 0;  // of u64
    const char *const begin = cursor_.text().data() + cursor_.at(), *const end = cursor_.text().data() + cursor_.text().size();
    const auto [rest, status] = std::from_chars(begin, end, large);
    if (status != std::errc{}) return false;
    cursor_.move_to(cursor_.at() + static_cast<std::size_t>(rest - begin));
    return literal_.integers.push_back(static_cast<std::int64_t>(large)), true;
  }

  /// The least number that is rounded to infinity.
  static double beyond(HloType type) {
    switch (type) {
      case HloType::f16: return 65520;
      case HloType::bf16: return 0x1.ffp127;
      case HloType::f32:
      case HloType::c64: return 0x1.ffffffp127;
      default: return HUGE_VAL;
    }
  }

  bool read_real() {
    const char *const begin = cursor_.text().data() + cursor_.at(), *const end = cursor_.text().data() + cursor_.text().size();
    double value = 0;
    auto [rest, status] = std::from_chars(begin, end, value);  // also inf and nan
    if (status == std::errc::result_out_of_range) {
      // No double is so large or so small; from_chars does not say which.
      const std::string_view number{begin, static_cast<std::size_t>(rest - begin)};
      if (number.find("e-") == std::string_view::npos && number.find("E-") == std::string_view::npos) return false;
      value = number.starts_with('-') ? -0.0 : 0.0;
    } else if (status != std::errc{}) {
      return false;
    }
    cursor_.move_to(cursor_.at() + static_cast<std::size_t>(rest - begin));
    if (std::isfinite(value) && std::abs(value) >= beyond(shape_.type)) return false;
    if (std::isnan(value) && cursor_.peek() == '(' && !cursor_.take_balanced()) return false;  // nan(0x1)
    return literal_.reals.push_back(value), true;
  }

  HloCursor& cursor_;
  const HloShape& shape_;
  HloLiteral& literal_;
  std::size_t begin_;
};

}  // namespace

Status read_literal(HloCursor& cursor, const HloShape& shape, HloLiteral& literal) { return LiteralText{cursor, shape, literal}.read(); }

}  // namespace podsim

// JSON as it is written: values without templates, so that what makes them compiles quickly.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace podsim {

struct JsonMember;

/// null, a truth value, an integer of 64 bits, a double, a text, an array, or an object whose members keep the order they were set in.
/// Copies are deep.
class Json {
 public:
  Json();  // null
  Json(std::nullptr_t);
  Json(bool value);
  Json(double value);
  Json(int value);
  Json(unsigned value);
  Json(long value);
  Json(unsigned long value);
  Json(long long value);
  Json(unsigned long long value);
  Json(const char* text);
  Json(std::string_view text);
  Json(const std::string& text);
  Json(const std::vector<int>& numbers);
  Json(const std::vector<std::string>& texts);
  Json(std::initializer_list<JsonMember> members);  // an object; takes the values out of the list
  template <class T>
  Json(const T*) = delete;  // would be a truth value

  Json(const Json& other);
  Json(Json&& other) noexcept;
  Json& operator=(Json other) noexcept;
  ~Json();

  static Json array();
  static Json object();

  /// Sets a member of an object, in its place or behind the last one. Null becomes an object by it.
  void set(std::string_view name, Json value);
  /// Sets all members of another object.
  void update(Json members);
  /// Of an array. Null becomes one by it.
  void push_back(Json value);

  /// Numbers in the fewest digits that read back as the same double; infinities and NaN are null. A byte that is no UTF-8 becomes U+FFFD.
  /// Lines are indented by `indent` for each level; without it everything is on one line.
  [[nodiscard]] std::string dump(std::optional<unsigned> indent = std::nullopt) const;

 private:
  struct Value;
  std::unique_ptr<Value> value_;
};

/// A name and its value in the list that an object is made of.
struct JsonMember {
  std::string_view name;
  mutable Json value;  // an initializer_list is constant; what it holds moves into the object nevertheless
};

/// null where there is none.
Json or_null(const std::optional<double>& value);
Json or_null(const std::optional<std::int64_t>& value);
/// null for an empty text.
Json or_null(const std::string& text);

/// A JSON string with its quotation marks.
std::string json_text(std::string_view text);

/// The text, with U+FFFD for what is no UTF-8.
std::string as_utf8(std::string_view text);

}  // namespace podsim

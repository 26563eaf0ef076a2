#include "tools/report/json.hpp"

#include <nlohmann/json.hpp>
#include <utility>

#include "sim/base/invariant.hpp"

namespace podsim {

struct Json::Value {
  explicit Value(nlohmann::ordered_json value = {}) : json(std::move(value)) {}  // no braces, which would make an array of it
  nlohmann::ordered_json json;
};

Json::Json() : value_{std::make_unique<Value>()} {}
Json::Json(std::nullptr_t) : Json{} {}
Json::Json(bool value) : value_{std::make_unique<Value>(value)} {}
Json::Json(double value) : value_{std::make_unique<Value>(value)} {}
Json::Json(int value) : value_{std::make_unique<Value>(value)} {}
Json::Json(unsigned value) : value_{std::make_unique<Value>(value)} {}
Json::Json(long value) : value_{std::make_unique<Value>(value)} {}
Json::Json(unsigned long value) : value_{std::make_unique<Value>(value)} {}
Json::Json(long long value) : value_{std::make_unique<Value>(value)} {}
Json::Json(unsigned long long value) : value_{std::make_unique<Value>(value)} {}
Json::Json(const char* text) : value_{std::make_unique<Value>(text)} {}
Json::Json(std::string_view text) : value_{std::make_unique<Value>(text)} {}
Json::Json(const std::string& text) : value_{std::make_unique<Value>(text)} {}
Json::Json(const std::vector<int>& numbers) : value_{std::make_unique<Value>(numbers)} {}
Json::Json(const std::vector<std::string>& texts) : value_{std::make_unique<Value>(texts)} {}
Json::Json(std::initializer_list<JsonMember> members) : Json{object()} {
  for (const JsonMember& member : members) set(member.name, std::move(member.value));
}

Json::Json(const Json& other) : value_{std::make_unique<Value>(*other.value_)} {}
Json::Json(Json&& other) noexcept = default;
Json& Json::operator=(Json other) noexcept {
  value_.swap(other.value_);
  return *this;
}
Json::~Json() = default;

Json Json::array() {
  Json json;
  json.value_->json = nlohmann::ordered_json::array();
  return json;
}

Json Json::object() {
  Json json;
  json.value_->json = nlohmann::ordered_json::object();
  return json;
}

void Json::set(std::string_view name, Json value) { value_->json[std::string{name}] = std::move(value.value_->json); }

void Json::update(Json members) {
  PODSIM_ASSERT(members.value_->json.is_object());
  for (auto& [name, value] : members.value_->json.get_ref<nlohmann::ordered_json::object_t&>()) value_->json[name] = std::move(value);
}

void Json::push_back(Json value) { value_->json.push_back(std::move(value.value_->json)); }

std::string Json::dump(std::optional<unsigned> indent) const {
  return value_->json.dump(indent ? static_cast<int>(*indent) : -1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

Json or_null(const std::optional<double>& value) { return value ? Json{*value} : Json{}; }
Json or_null(const std::optional<std::int64_t>& value) { return value ? Json{*value} : Json{}; }
Json or_null(const std::string& text) { return text.empty() ? Json{} : Json{text}; }

std::string json_text(std::string_view text) { return Json{text}.dump(); }

std::string as_utf8(std::string_view text) { return nlohmann::ordered_json::parse(json_text(text)).get<std::string>(); }

}  // namespace podsim

#include "tools/report/json.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <utility>

namespace podsim {
namespace {

TEST(Json, AnObjectKeepsTheOrderItsMembersWereSetIn) {
  Json json{{"z", 1}, {"a", true}, {"m", nullptr}};
  json.set("b", "text");
  json.set("z", 2.5);
  EXPECT_EQ(json.dump(), R"({"z":2.5,"a":true,"m":null,"b":"text"})");
  EXPECT_EQ((Json{{"a", "b"}}).dump(), R"({"a":"b"})");
}

TEST(Json, NullBecomesWhatIsPutInIt) {
  Json array, object;
  array.push_back(1);
  object.set("a", 1);
  EXPECT_EQ(Json{}.dump(), "null");
  EXPECT_EQ(array.dump(), "[1]");
  EXPECT_EQ(object.dump(), R"({"a":1})");
  EXPECT_EQ(Json::array().dump(2) + Json::object().dump(2), "[]{}");
}

TEST(Json, IndentsByLevel) {
  const Json json{{"a", std::vector<int>{1, 2}}, {"b", Json{{"c", std::vector<std::string>{"x"}}}}};
  EXPECT_EQ(json.dump(2), "{\n  \"a\": [\n    1,\n    2\n  ],\n  \"b\": {\n    \"c\": [\n      \"x\"\n    ]\n  }\n}");
}

TEST(Json, NumbersReadBackAsTheyWere) {
  EXPECT_EQ(Json{0.1}.dump() + " " + Json{1e22}.dump() + " " + Json{3.0}.dump(), "0.1 1e+22 3.0");
  EXPECT_EQ(Json{std::numeric_limits<std::int64_t>::min()}.dump(), "-9223372036854775808");
  EXPECT_EQ(Json{std::numeric_limits<std::uint64_t>::max()}.dump(), "18446744073709551615");
  EXPECT_EQ(Json{std::numeric_limits<double>::infinity()}.dump(), "null");
}

TEST(Json, UpdateReplacesAndAppends) {
  Json json{{"a", 1}, {"b", 2}};
  json.update(Json{{"b", 3}, {"c", 4}});
  EXPECT_EQ(json.dump(), R"({"a":1,"b":3,"c":4})");
}

TEST(Json, CopiesAreDeep) {
  Json json{{"a", 1}};
  const Json copy = json;
  const Json around{{"inner", json}};
  json.set("a", 2);
  EXPECT_EQ(copy.dump(), R"({"a":1})");
  EXPECT_EQ(around.dump(), R"({"inner":{"a":1}})");
}

TEST(Json, WhatIsMissingIsNull) {
  EXPECT_EQ((Json{{"number", or_null(std::optional<double>{})}, {"count", or_null(std::optional<std::int64_t>{7})}, {"text", or_null(std::string{})}}).dump(),
            R"({"number":null,"count":7,"text":null})");
}

TEST(Json, BytesThatAreNoUtf8AreReplaced) {
  EXPECT_EQ(json_text("a\"\n\xff" "b"), "\"a\\\"\\n\xef\xbf\xbd" "b\"");
  EXPECT_EQ(as_utf8("a\"\xff"), "a\"\xef\xbf\xbd");
  EXPECT_EQ((Json{{"name\xff", 1}}).dump(), "{\"name\xef\xbf\xbd\":1}");
}

}  // namespace
}  // namespace podsim

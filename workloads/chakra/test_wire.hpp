// The format by hand, apart from Protobuf: bytes of traces written and taken apart by the numbers of the format's tables.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace podsim::test {

inline std::string varint(std::uint64_t value) {
  std::string bytes;
  for (; value >= 128; value >>= 7) bytes += static_cast<char>(value % 128 + 128);
  return bytes += static_cast<char>(value);
}
/// A field of wire type 0 and 2.
inline std::string number(int field, std::uint64_t value) { return varint(static_cast<std::uint64_t>(field) << 3) + varint(value); }
inline std::string bytes(int field, std::string_view content) {
  return varint(static_cast<std::uint64_t>(field) << 3 | 2) + varint(content.size()) + std::string{content};
}
inline std::string record(std::string_view message) { return varint(message.size()) + std::string{message}; }
/// The header of a file.
inline std::string metadata(std::string_view version = "1.0.0") { return record(bytes(1, version)); }

/// Numbers of an attribute's variants.
enum ValueField { double_list = 4, int32_val = 7, int64_val = 9, int64_list = 10, uint64_val = 13, bool_val = 27, bool_list = 28, string_val = 29 };
inline std::string attribute(std::string_view name, int variant, std::uint64_t value) { return bytes(10, bytes(1, name) + number(variant, value)); }
inline std::string attribute(std::string_view name, int variant, std::string_view text) { return bytes(10, bytes(1, name) + bytes(variant, text)); }

enum NodeNumber { metadata_node = 1, mem_load = 2, mem_store = 3, comp = 4, comm_send = 5, comm_recv = 6, comm_coll = 7 };
inline std::string node(std::uint64_t id, int type, const std::vector<std::uint64_t>& data_deps = {}, const std::string& rest = {}) {
  std::string packed;
  for (const std::uint64_t dependency : data_deps) packed += varint(dependency);
  return (id == 0 ? "" : number(1, id)) + bytes(2, "n" + std::to_string(id)) + number(3, static_cast<std::uint64_t>(type)) +
         (packed.empty() ? "" : bytes(5, packed)) + rest;
}
inline std::string comp_micros(std::uint64_t id, std::uint64_t micros, const std::vector<std::uint64_t>& after = {}) {
  return record(node(id, comp, after, number(7, micros)));
}
inline std::string send_to(std::uint64_t id, int to, std::uint64_t size, const std::vector<std::uint64_t>& after = {}, int tag = 0) {
  return record(node(id, comm_send, after,
                     attribute("comm_size", int64_val, size) + attribute("comm_dst", int32_val, static_cast<std::uint64_t>(to)) +
                         attribute("comm_tag", int32_val, static_cast<std::uint64_t>(tag))));
}
inline std::string recv_from(std::uint64_t id, int from, std::uint64_t size, const std::vector<std::uint64_t>& after = {}, int tag = 0) {
  return record(node(id, comm_recv, after,
                     attribute("comm_size", int64_val, size) + attribute("comm_src", int32_val, static_cast<std::uint64_t>(from)) +
                         attribute("comm_tag", int32_val, static_cast<std::uint64_t>(tag))));
}
inline std::string coll(std::uint64_t id, int type, std::uint64_t size, const std::vector<std::uint64_t>& after = {}, const std::string& rest = {}) {
  return record(node(id, comm_coll, after,
                     attribute("comm_type", int64_val, static_cast<std::uint64_t>(type)) + attribute("comm_size", int64_val, size) + rest));
}

/// A field as it stands on the wire.
struct WireField {
  int number = 0, type = 0;
  std::uint64_t value = 0;  // of types 0, 1 and 5
  std::string content{};    // of type 2
};

inline std::uint64_t take_varint(std::string_view& rest) {
  std::uint64_t value = 0;
  for (int shift = 0; !rest.empty(); shift += 7) {
    const auto byte = static_cast<unsigned char>(rest.front());
    rest.remove_prefix(1);
    value |= static_cast<std::uint64_t>(byte % 128) << shift;
    if (byte < 128) return value;
  }
  ADD_FAILURE() << "a number is cut";
  return value;
}

inline std::vector<WireField> fields_of(std::string_view message) {
  std::vector<WireField> fields;
  while (!message.empty()) {
    const std::uint64_t tag = take_varint(message);
    WireField field{static_cast<int>(tag >> 3), static_cast<int>(tag & 7)};
    const auto take = [&](std::size_t size) {
      EXPECT_LE(size, message.size());
      const std::string taken{message.substr(0, size)};
      message.remove_prefix(std::min(size, message.size()));
      return taken;
    };
    if (field.type == 0)
      field.value = take_varint(message);
    else if (field.type == 2)
      field.content = take(take_varint(message));
    else
      field.content = take(field.type == 1 ? 8 : 4);
    fields.push_back(std::move(field));
  }
  return fields;
}

inline std::vector<std::uint64_t> packed_numbers(std::string_view content) {
  std::vector<std::uint64_t> numbers;
  while (!content.empty()) numbers.push_back(take_varint(content));
  return numbers;
}

/// A record taken apart: fields by number but the attributes, those by name with the number of their variant.
struct WireNode {
  std::map<int, WireField> fields;
  std::map<std::string, WireField> attributes;
  [[nodiscard]] std::uint64_t value(int number) const { return fields.contains(number) ? fields.at(number).value : 0; }
  [[nodiscard]] std::uint64_t value(const std::string& name) const { return attributes.contains(name) ? attributes.at(name).value : 0; }
};

/// The records of a file, the metadata first.
inline std::vector<std::string> records_of(std::string_view file) {
  std::vector<std::string> records;
  while (!file.empty()) {
    const std::uint64_t size = take_varint(file);
    EXPECT_LE(size, file.size());
    records.emplace_back(file.substr(0, size));
    file.remove_prefix(std::min<std::size_t>(size, file.size()));
  }
  return records;
}

inline WireNode taken_apart(std::string_view record, int attributes_number = 10) {
  WireNode node;
  for (WireField& field : fields_of(record)) {
    if (field.number != attributes_number) {
      EXPECT_TRUE(node.fields.emplace(field.number, field).second) << "field " << field.number << " twice";
      continue;
    }
    std::string name;
    WireField value;
    for (WireField& part : fields_of(field.content)) {
      if (part.number == 1)
        name = part.content;
      else
        value = part;
    }
    EXPECT_TRUE(node.attributes.emplace(name, value).second) << name << " twice";
  }
  return node;
}

/// The nodes of a file.
inline std::vector<WireNode> nodes_of(std::string_view file) {
  std::vector<WireNode> nodes;
  const std::vector<std::string> records = records_of(file);
  for (std::size_t r = 1; r < records.size(); ++r) nodes.push_back(taken_apart(records[r]));
  return nodes;
}

}  // namespace podsim::test

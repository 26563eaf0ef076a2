#include "workloads/chakra/read_chakra.hpp"

#include <fmt/format.h>
#include <simdjson.h>
#include <zlib.h>

#include <algorithm>
#include <charconv>
#include <queue>
#include <set>
#include <unordered_map>

#include "sim/base/file_names.hpp"
#include "sim/base/input_file.hpp"
#include "workloads/chakra/attributes.hpp"
#include "workloads/chakra/pytorch_trace.hpp"

namespace podsim {

namespace {

constexpr std::size_t most_bytes = std::size_t{1} << 31;   // of a trace, inflated
constexpr std::uint64_t most_of_record = 64U << 20;        // no node is longer
constexpr std::int64_t most_size = std::int64_t{1} << 50;  // bytes of a message, FLOPs: sums of them stay exact
constexpr std::size_t most_nodes = std::size_t{1} << 24;

/// The inflated bytes. Errors: they are corrupt, truncated or too many.
Expected<std::string> inflated(std::string_view bytes, const std::string& file) {
  z_stream stream{};
  constexpr int gzip_only = 16 + MAX_WBITS;
  if (inflateInit2(&stream, gzip_only) != Z_OK) return Diagnostic{{file}, "there is no memory to inflate it", Cause::environment};
  std::string out;
  std::vector<char> block(1 << 16);
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  std::size_t rest = bytes.size();
  std::string wrong;
  int status = Z_OK;
  while (wrong.empty()) {
    const auto piece = static_cast<uInt>(std::min<std::size_t>(rest, 1U << 30));
    stream.avail_in = piece;
    stream.next_out = reinterpret_cast<Bytef*>(block.data());
    stream.avail_out = static_cast<uInt>(block.size());
    status = inflate(&stream, Z_NO_FLUSH);
    rest -= piece - stream.avail_in;
    out.append(block.data(), block.size() - stream.avail_out);
    if (out.size() > most_bytes) wrong = fmt::format("expected at most {} bytes inflated, found more", most_bytes);
    if (status == Z_STREAM_END) {
      if (rest == 0) break;
      if (inflateReset(&stream) != Z_OK) wrong = "there is no memory to inflate it";
    } else if (status != Z_OK) {
      wrong = status == Z_BUF_ERROR && rest == 0 ? std::string{"the compressed data are truncated"}
                                                 : fmt::format("the compressed data are corrupt before byte {}{}", bytes.size() - rest,
                                                               stream.msg != nullptr ? std::string{": "} + stream.msg : "");
    }
  }
  inflateEnd(&stream);
  if (!wrong.empty()) return Diagnostic{{file}, wrong};
  return out;
}

struct Record {
  std::string_view bytes;
  std::size_t next = 0;  // where the next one begins
};

/// The record at `at`. Errors: it is truncated, or longer than any.
Expected<Record> record_at(std::string_view bytes, std::size_t at, int number, const std::string& file) {
  const auto wrong = [&](const std::string& message) { return chakra_error(file, number, fmt::format("at byte {}: {}", at, message)); };
  std::uint64_t length = 0;
  std::size_t end = at;
  for (int shift = 0;; shift += 7, ++end) {
    if (end == bytes.size()) return wrong("expected the length of a record, found the end of the file");
    if (shift > 63) return wrong("expected a length of at most ten bytes, found a longer one");
    const auto byte = static_cast<unsigned char>(bytes[end]);
    length |= static_cast<std::uint64_t>(byte & 0x7f) << shift;
    if ((byte & 0x80) == 0) break;
  }
  ++end;
  if (length > most_of_record) return wrong(fmt::format("expected a record of at most {} bytes, found one of {}", most_of_record, length));
  if (length > bytes.size() - end)
    return wrong(fmt::format("expected a record of {} bytes, found {}: the file is truncated", length, bytes.size() - end));
  return Record{bytes.substr(end, length), end + length};
}

/// What is wrong with the values of a node; empty: nothing.
std::string problem_of(const ChakraNode& node) {
  const auto within = [](std::int64_t value, std::int64_t most) { return 0 <= value && value <= most; };
  if (node.type == ChakraType::invalid) return "expected a node with a type, found type 0";
  if (!within(node.num_ops, std::int64_t{1} << 62)) return fmt::format("attribute num_ops: expected no negative number, found {}", node.num_ops);
  if (node.tensor_size > static_cast<std::uint64_t>(most_size))
    return fmt::format("attribute tensor_size: expected at most {}, found {}", most_size, node.tensor_size);
  if (!within(node.comm_size, most_size)) return fmt::format("attribute comm_size: expected 0 to {}, found {}", most_size, node.comm_size);
  if (node.duration_micros > 1'000'000'000'000) return fmt::format("duration_micros: expected at most 1000000000000, found {}", node.duration_micros);
  if (const auto duration = node.extension.duration; duration && !within(duration->count(), 1'000'000'000'000'000'000))
    return fmt::format("attribute duration_ps: expected at most 1000000000000000000, found {}", static_cast<std::uint64_t>(duration->count()));
  if (const std::vector<double>& work = node.extension.work_s;
      !work.empty() && !(work.size() == 3 && work[1] >= 0 && work[2] >= 0 && work[1] + work[2] <= work[0] && work[0] <= 1e6))
    return "attribute work_s: expected three times in seconds, the second and third part of the first, found others";
  if (node.type == ChakraType::comm_coll && !within(node.comm_type, static_cast<std::int64_t>(ChakraCollective::barrier)))
    return fmt::format("attribute comm_type: expected 0 to 9, found {}", node.comm_type);
  return {};
}

/// Process groups as traces of PyTorch have them: a text in a list, of which the quotes and brackets are cut off, that is a list of
/// {"pg_name": "7", "ranks": [0, 1]}. Anything else in a METADATA node has no meaning here. Errors: a message.
Status read_groups(std::string_view values, ChakraGroups& groups) {
  if (values.size() < 6) return success();
  simdjson::dom::parser parser;
  simdjson::dom::array list;
  if (parser.parse(simdjson::padded_string{values.substr(2, values.size() - 4)}).get(list) != simdjson::SUCCESS) return success();
  for (const auto element : list) {
    std::string_view name;
    simdjson::dom::array ranks;
    if (element["pg_name"].get(name) != simdjson::SUCCESS || element["ranks"].get(ranks) != simdjson::SUCCESS) continue;
    std::vector<int> group;
    std::set<std::int64_t> seen;
    for (const auto each : ranks) {
      std::int64_t rank = -1;
      if (each.get(rank) != simdjson::SUCCESS || rank < 0 || rank > 1 << 24 || !seen.insert(rank).second)
        return Diagnostic{{}, fmt::format("process group {}: expected each rank once, found {}", quoted(name), simdjson::minify(ranks))};
      group.push_back(static_cast<int>(rank));
    }
    groups[std::string{name}] = std::move(group);
  }
  return success();
}

Expected<ChakraNode> node_of(std::string_view bytes, int number, const std::string& file, ChakraGroups& groups) {
  ChakraProtoMsg::Node message;
  if (!message.ParseFromArray(bytes.data(), static_cast<int>(bytes.size())))
    return chakra_error(file, number, "expected a Node, found bytes that are none");
  ChakraNode node;
  node.record = number;
  node.id = message.id();
  node.name = message.name();
  if (message.type() < 0 || message.type() > static_cast<int>(ChakraType::comm_coll))
    return chakra_error(file, number, fmt::format("expected a type from 1 to 7, found {}", static_cast<int>(message.type())));
  node.type = static_cast<ChakraType>(message.type());
  node.ctrl_deps.assign(message.ctrl_deps().begin(), message.ctrl_deps().end());
  node.data_deps.assign(message.data_deps().begin(), message.data_deps().end());
  node.start_micros = message.start_time_micros();
  node.duration_micros = message.duration_micros();
  if (node.type == ChakraType::metadata)
    if (const auto read = read_groups(message.inputs().values(), groups); !read) return chakra_error(file, number, read.error().message);
  std::string problem = read_attributes(message, node);
  if (problem.empty()) problem = problem_of(node);
  if (!problem.empty()) return chakra_error(file, number, problem);
  return node;
}

/// Traces that were linked from PyTorch's have a collective twice: as the host's call of c10d, and as the kernel that it launches. Only the kernel communicates. Errors: there is none.
Status keep_calls_on_host(ChakraTrace& trace) {
  const ChakraNode* first = nullptr;
  bool has_kernels = false;
  for (ChakraNode& node : trace.nodes) {
    if (!communicates(node)) continue;
    has_kernels = has_kernels || !node.is_cpu_op;
    if (node.is_cpu_op && first == nullptr) first = &node;
  }
  if (first == nullptr) return success();
  if (!has_kernels) return chakra_error(trace.file, first->record, "attribute is_cpu_op: expected false for communication, as in some record, found true in all");
  for (ChakraNode& node : trace.nodes)
    if (communicates(node) && node.is_cpu_op) node.type = ChakraType::comp, node.comm_size = 0;
  return success();
}

Status read_metadata(std::string_view bytes, ChakraTrace& trace) {
  ChakraProtoMsg::GlobalMetadata metadata;
  if (!metadata.ParseFromArray(bytes.data(), static_cast<int>(bytes.size())))
    return chakra_error(trace.file, 0, "expected the GlobalMetadata of a Chakra trace, found bytes that are none");
  trace.version = metadata.version();
  for (const auto& attribute : metadata.attr()) {
    if (attribute.name() == "collective_algorithm") trace.collective_algorithm = attribute.string_val();
    if (attribute.name() == "mesh") trace.mesh = attribute.string_val();
    if (attribute.name() == "collective_chunks")
      trace.collective_chunks = static_cast<int>(std::clamp<std::int64_t>(attribute.int64_val(), 0, 1 << 20));
  }
  return success();
}

}  // namespace

std::string chakra_file(const std::string& prefix, int rank) { return fmt::format("{}.{}.et", prefix, rank); }

std::string chakra_groups_file(const std::string& prefix) { return prefix + ".groups.json"; }

int chakra_ranks(const std::string& prefix) {
  int ranks = 0;
  while (file_exists(chakra_file(prefix, ranks))) ++ranks;
  return ranks;
}

Diagnostic chakra_error(const std::string& file, int record, const std::string& message) {
  return {{file}, fmt::format("record {}: {}", record, message)};
}

Expected<ChakraTrace> parse_chakra(std::string_view bytes, const std::string& file) {
  std::string whole;
  if (bytes.starts_with("\x1f\x8b")) {
    auto text = inflated(bytes, file);
    if (!text) return text.error();
    whole = *std::move(text);
    bytes = whole;
  }
  if (is_pytorch_trace(bytes)) return parse_pytorch_trace(bytes, file);
  ChakraTrace trace;
  trace.file = file;
  if (bytes.empty()) return Diagnostic{{file}, "expected the records of a Chakra trace, found an empty file"};
  std::unordered_map<std::uint64_t, int> records;
  int number = 0;
  for (std::size_t at = 0; at < bytes.size(); ++number) {
    const auto record = record_at(bytes, at, number, file);
    if (!record) return record.error();
    if (number == 0) {
      if (auto ok = read_metadata(record->bytes, trace); !ok) return ok.error();
    } else {
      if (record->bytes.empty()) break;  // readers of this format stop there
      auto node = node_of(record->bytes, number, file, trace.groups);
      if (!node) return node.error();
      const auto [first, is_new] = records.try_emplace(node->id, number);
      if (!is_new) return chakra_error(file, number, fmt::format("expected an id of its own, found {}, that of record {}", node->id, first->second));
      if (trace.nodes.size() == most_nodes) return chakra_error(file, number, fmt::format("expected at most {} nodes, found more", most_nodes));
      trace.nodes.push_back(*std::move(node));
    }
    at = record->next;
  }
  if (auto ok = keep_calls_on_host(trace); !ok) return ok.error();
  if (const auto order = chakra_order(trace); !order) return order.error();
  return trace;
}

Expected<ChakraTrace> read_chakra(const std::string& prefix, int rank) {
  const std::string file = chakra_file(prefix, rank);
  const auto bytes = read_file(file, {Bytes{static_cast<std::int64_t>(most_bytes)}});
  if (!bytes) return bytes.error();
  return parse_chakra(*bytes, file);
}

Expected<std::vector<std::size_t>> chakra_order(const ChakraTrace& trace) {
  std::unordered_map<std::uint64_t, std::size_t> position;
  for (std::size_t i = 0; i < trace.nodes.size(); ++i) position[trace.nodes[i].id] = i;
  std::vector<std::vector<std::size_t>> followers(trace.nodes.size());
  std::vector<std::size_t> waits(trace.nodes.size(), 0);
  for (std::size_t i = 0; i < trace.nodes.size(); ++i)
    for (const auto* dependencies : {&trace.nodes[i].ctrl_deps, &trace.nodes[i].data_deps})
      for (const std::uint64_t id : *dependencies) {
        const auto found = position.find(id);
        if (found == position.end())
          return chakra_error(trace.file, trace.nodes[i].record, fmt::format("expected dependencies on nodes of this trace, found node {}", id));
        followers[found->second].push_back(i);
        ++waits[i];
      }
  const auto later = [&](std::size_t a, std::size_t b) { return trace.nodes[a].id > trace.nodes[b].id; };
  std::priority_queue<std::size_t, std::vector<std::size_t>, decltype(later)> ready(later);
  for (std::size_t i = 0; i < trace.nodes.size(); ++i)
    if (waits[i] == 0) ready.push(i);
  std::vector<std::size_t> order;
  while (!ready.empty()) {
    const std::size_t i = ready.top();
    ready.pop();
    order.push_back(i);
    for (const std::size_t follower : followers[i])
      if (--waits[follower] == 0) ready.push(follower);
  }
  if (order.size() == trace.nodes.size()) return order;
  // Back from a node that is left, always to one that is left: sooner or later to a node that was seen before.
  std::size_t at = 0;
  while (waits[at] == 0) ++at;
  std::vector<std::size_t> path;
  std::vector<bool> seen(trace.nodes.size(), false);
  while (!seen[at]) {
    seen[at] = true;
    path.push_back(at);
    const ChakraNode& node = trace.nodes[at];
    for (const auto* dependencies : {&node.ctrl_deps, &node.data_deps})
      for (const std::uint64_t id : *dependencies)
        if (const std::size_t next = position.at(id); waits[next] != 0) at = next;
  }
  std::string text;
  constexpr int most_named = 8;
  int named = 0;
  for (auto step = std::find(path.begin(), path.end(), at); step != path.end() && named < most_named; ++step, ++named)
    text += fmt::format("{}, ", trace.nodes[*step].id);
  return chakra_error(
      trace.file, trace.nodes[at].record,
      fmt::format("expected dependencies without a cycle, found {}{}{}", text, named == most_named ? ".., " : "", trace.nodes[at].id));
}

Expected<ChakraGroups> parse_chakra_groups(std::string_view json, const std::string& file, int ranks) {
  namespace dom = simdjson::dom;
  dom::parser parser;
  dom::object object;
  const simdjson::padded_string text{json};
  dom::element root;
  if (const auto error = parser.parse(text).get(root))
    return Diagnostic{{file}, fmt::format("expected a JSON object of process groups: {}", simdjson::error_message(error))};
  if (root.get(object) != simdjson::SUCCESS) return Diagnostic{{file}, R"(expected an object {"1": [0, 1], ..} of process groups)"};
  ChakraGroups groups;
  for (const auto& [key, value] : object) {
    const std::string name{key};
    int id = 0;
    const auto [rest, status] = std::from_chars(name.data(), name.data() + name.size(), id);
    if (status != std::errc{} || rest != name.data() + name.size() || id <= 0 || name.front() == '0')
      return Diagnostic{{file}, "expected the id of a process group as a decimal number above 0, found " + quoted(name)};
    dom::array list;
    if (value.get(list) != simdjson::SUCCESS) return Diagnostic{{file}, fmt::format("group {}: expected an array of ranks", quoted(name))};
    std::vector<int> group;
    std::set<std::int64_t> seen;
    for (const auto element : list) {
      std::int64_t rank = -1;
      if (element.get(rank) != simdjson::SUCCESS || rank < 0 || rank >= ranks)
        return Diagnostic{{file}, fmt::format("group {}: expected ranks from 0 to {}, found {}", quoted(name), ranks - 1, simdjson::minify(element))};
      if (!seen.insert(rank).second) return Diagnostic{{file}, fmt::format("group {}: expected each rank once, found {} twice", quoted(name), rank)};
      group.push_back(static_cast<int>(rank));
    }
    if (group.empty()) return Diagnostic{{file}, fmt::format("group {}: expected at least one rank, found none", quoted(name))};
    if (!groups.emplace(name, std::move(group)).second)
      return Diagnostic{{file}, fmt::format("group {}: expected it once, found it twice", quoted(name))};
  }
  return groups;
}

Expected<ChakraGroups> read_chakra_groups(const std::string& file, int ranks) {
  const auto text = read_file(file, {Bytes{1 << 30}});
  if (!text) return text.error();
  return parse_chakra_groups(*text, file, ranks);
}

}  // namespace podsim

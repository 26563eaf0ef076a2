#include "workloads/chakra/pytorch_trace.hpp"

#include <fmt/format.h>
#include <simdjson.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "sim/base/text.hpp"

namespace podsim {

namespace {

namespace dom = simdjson::dom;

struct CollectiveWord {
  std::string_view name;
  std::optional<ChakraCollective> kind;  // nullopt: nothing is sent
};
// The names that c10d's ProcessGroupNCCL and ProcessGroupGloo give to RECORD_PARAM_COMMS.
constexpr std::array<CollectiveWord, 22> collective_words{{{"allreduce", ChakraCollective::all_reduce},
                                                           {"allreduce_coalesced", ChakraCollective::all_reduce},
                                                           {"allreduce_sparse", ChakraCollective::all_reduce},
                                                           {"all_gather", ChakraCollective::all_gather},
                                                           {"allgather", ChakraCollective::all_gather},
                                                           {"_allgather_base", ChakraCollective::all_gather},
                                                           {"all_gather_into_tensor", ChakraCollective::all_gather},
                                                           {"all_gather_into_tensor_coalesced", ChakraCollective::all_gather},
                                                           {"allgather_into_tensor_coalesced", ChakraCollective::all_gather},
                                                           {"reduce_scatter", ChakraCollective::reduce_scatter},
                                                           {"_reduce_scatter_base", ChakraCollective::reduce_scatter},
                                                           {"reduce_scatter_tensor", ChakraCollective::reduce_scatter},
                                                           {"reduce_scatter_tensor_coalesced", ChakraCollective::reduce_scatter},
                                                           {"all_to_all", ChakraCollective::all_to_all},
                                                           {"all_to_allv", ChakraCollective::all_to_all},
                                                           {"alltoall", ChakraCollective::all_to_all},
                                                           {"alltoall_base", ChakraCollective::all_to_all},
                                                           {"broadcast", ChakraCollective::broadcast},
                                                           {"reduce", ChakraCollective::reduce},
                                                           {"wait", std::nullopt},
                                                           {"barrier", std::nullopt},
                                                           {"init", std::nullopt}}};

/// Bytes of an element; 0: no dtype that is known.
std::int64_t element_bytes(std::string_view dtype) {
  constexpr std::array<std::pair<std::string_view, std::int64_t>, 18> known{{{"Byte", 1}, {"Char", 1}, {"Bool", 1}, {"Float8_e4m3fn", 1}, {"Float8_e5m2", 1}, {"Short", 2}, {"Half", 2}, {"BFloat16", 2}, {"Int", 4}, {"Float", 4}, {"Long", 8}, {"Double", 8},
                                                                             {"c10::BFloat16", 2}, {"c10::Half", 2}, {"float", 4}, {"double", 8}, {"int", 4}, {"long int", 8}}};
  const auto* const found = std::ranges::find(known, dtype, &std::pair<std::string_view, std::int64_t>::first);
  return found == known.end() ? 0 : found->second;
}

/// The attributes of a node: {"name": .., "type": .., "value": ..}.
class NodeAttributes {
 public:
  explicit NodeAttributes(dom::element node) {
    if (dom::array list; node["attrs"].get(list) == simdjson::SUCCESS) list_ = list;
  }
  [[nodiscard]] std::optional<std::string> text(std::string_view name) const {
    const auto value = find(name);
    std::string_view found;
    return value && value->get(found) == simdjson::SUCCESS ? std::optional{std::string{found}} : std::nullopt;
  }
  [[nodiscard]] std::optional<std::int64_t> number(std::string_view name) const {
    const auto value = find(name);
    std::int64_t found = 0;
    return value && value->get(found) == simdjson::SUCCESS ? std::optional{found} : std::nullopt;
  }

 private:
  [[nodiscard]] std::optional<dom::element> find(std::string_view name) const {
    if (!list_) return std::nullopt;
    for (const dom::element attribute : *list_) {
      std::string_view own;
      dom::element value;
      if (attribute["name"].get(own) == simdjson::SUCCESS && own == name && attribute["value"].get(value) == simdjson::SUCCESS) return value;
    }
    return std::nullopt;
  }

  std::optional<dom::array> list_;
};

class PytorchReader {
 public:
  explicit PytorchReader(const std::string& file) { trace_.file = file, trace_.version = "PyTorch"; }

  Expected<ChakraTrace> read(dom::array nodes) {
    int number = 0;
    for (const dom::element node : nodes) {
      std::string_view name;
      if (node["name"].get(name) == simdjson::SUCCESS && name == "record_param_comms")
        if (auto ok = add(node, number); !ok) return ok.error();
      ++number;
    }
    if (trace_.nodes.empty()) return Diagnostic{{trace_.file}, "expected a node record_param_comms with a collective_name, found none: PyTorch writes them from 2.5 on, with torch.distributed"};
    return std::move(trace_);
  }

 private:
  Status add(dom::element node, int number) {
    const NodeAttributes attributes{node};
    const auto wrong = [&](const std::string& message) { return chakra_error(trace_.file, number, message); };
    const auto word = attributes.text("collective_name");
    if (!word) return wrong("expected an attribute \"collective_name\" of record_param_comms, found none: PyTorch before 2.5 does not write it");
    const auto* const known = std::ranges::find(collective_words, *word, &CollectiveWord::name);
    if (known == collective_words.end()) return wrong(fmt::format("expected a collective of c10d, found {}{}", quoted(*word), *word == "send" || *word == "recv" ? ": these traces do not say to whom it goes" : ""));
    if (!known->kind) return success();
    const auto elements = attributes.number("in_msg_nelems"), start = attributes.number("global_rank_start"), stride = attributes.number("global_rank_stride"), size = attributes.number("pg_size");
    const auto dtype = attributes.text("dtype"), group = attributes.text("pg_name");
    if (!elements || !dtype || !size) return wrong("expected the attributes in_msg_nelems, dtype and pg_size of a collective, found not all of them");
    const std::int64_t bytes = element_bytes(*dtype);
    if (bytes == 0) return wrong(fmt::format("expected a dtype of torch, as \"BFloat16\", found {}", quoted(*dtype)));
    if (*elements < 0 || *elements > (std::int64_t{1} << 50) / bytes || *size < 1 || *size > 1 << 24) return wrong("expected numbers of elements and ranks in range");
    ChakraNode& made = trace_.nodes.emplace_back();
    made.id = trace_.nodes.size(), made.record = number;
    made.name = *word, made.type = ChakraType::comm_coll;
    made.comm_type = static_cast<std::int64_t>(*known->kind);
    made.comm_size = *elements * bytes;
    // Groups have ids above 0 there; "0" is the default group of torch, of all ranks.
    if (start && stride && *stride > 0 && *start >= 0 && (*start > 0 || *stride > 1 || (group && *group != "0"))) {
      made.pg_name = id_of(*start, *stride, *size);
    }
    const auto [last, is_first] = last_of_.try_emplace(made.pg_name, made.id);
    if (!is_first) made.ctrl_deps.push_back(std::exchange(last->second, made.id));
    return success();
  }

  /// The same in the traces of all ranks, whatever else these have: PyTorch's own names differ from rank to rank.
  std::string id_of(std::int64_t start, std::int64_t stride, std::int64_t size) {
    std::string id = fmt::format("{}+{}x{}", start, size, stride);
    if (const auto [group, is_new] = trace_.groups.try_emplace(id); is_new)
      for (std::int64_t r = 0; r < size; ++r) group->second.push_back(static_cast<int>(start + r * stride));
    return id;
  }

  ChakraTrace trace_;
  std::map<std::string, std::uint64_t> last_of_;  // by process group
};

}  // namespace

bool is_pytorch_trace(std::string_view bytes) {
  const std::string_view text = trimmed(bytes);  // a record of 123 bytes begins with a brace, too
  return text.size() > 1 && text.front() == '{' && text.back() == '}' && (trimmed(text.substr(1)).front() == '"' || trimmed(text.substr(1)).front() == '}');
}

Expected<ChakraTrace> parse_pytorch_trace(std::string_view bytes, const std::string& file) {
  dom::parser parser;
  const simdjson::padded_string text{bytes};
  dom::element root;
  if (const auto error = parser.parse(text).get(root)) return Diagnostic{{file}, fmt::format("expected an execution trace of PyTorch as JSON: {}", simdjson::error_message(error))};
  dom::array nodes;
  if (root["nodes"].get(nodes) != simdjson::SUCCESS) return Diagnostic{{file}, "expected a list \"nodes\", found none"};
  return PytorchReader{file}.read(nodes);
}

}  // namespace podsim

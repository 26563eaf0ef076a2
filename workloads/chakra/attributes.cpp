#include "workloads/chakra/attributes.hpp"

#include <fmt/format.h>

#include <array>

namespace podsim {

namespace {

using Attribute = ChakraProtoMsg::AttributeProto;

/// One attribute with a meaning: its name, its variant, and how it is read into a node and written from it.
struct Rule {
  std::string_view name;
  Attribute::ValueCase variant;
  void (*read)(const Attribute&, ChakraNode&);
  bool (*belongs)(const ChakraNode&);  // whether a node of this kind is written with it
  void (*write)(const ChakraNode&, Attribute&);
};

bool is_collective(const ChakraNode& n) { return n.type == ChakraType::comm_coll; }
bool is_half(const ChakraNode& n) { return n.type == ChakraType::comm_send || n.type == ChakraType::comm_recv; }
bool is_memory(const ChakraNode& n) { return n.type == ChakraType::mem_load || n.type == ChakraType::mem_store; }
bool has_origin(const ChakraNode& n) { return !n.extension.origin_kind.empty(); }

void write_list(const std::vector<std::int64_t>& values, Attribute& to) {
  for (const std::int64_t value : values) to.mutable_int64_list()->add_values(value);
}
std::vector<std::int64_t> list_of(const Attribute& from) { return {from.int64_list().values().begin(), from.int64_list().values().end()}; }

/// In the order in which they are written.
const std::array<Rule, 32> rules{{
    {"is_cpu_op", Attribute::kBoolVal, [](const Attribute& a, ChakraNode& n) { n.is_cpu_op = a.bool_val(); }, [](const ChakraNode&) { return true; },
     [](const ChakraNode& n, Attribute& a) { a.set_bool_val(n.is_cpu_op); }},
    {"num_ops", Attribute::kInt64Val, [](const Attribute& a, ChakraNode& n) { n.num_ops = a.int64_val(); },
     [](const ChakraNode& n) { return n.type == ChakraType::comp; }, [](const ChakraNode& n, Attribute& a) { a.set_int64_val(n.num_ops); }},
    {"tensor_size", Attribute::kUint64Val, [](const Attribute& a, ChakraNode& n) { n.tensor_size = a.uint64_val(); },
     [](const ChakraNode& n) { return n.type == ChakraType::comp || is_memory(n); },
     [](const ChakraNode& n, Attribute& a) { a.set_uint64_val(n.tensor_size); }},
    {"comm_type", Attribute::kInt64Val, [](const Attribute& a, ChakraNode& n) { n.comm_type = a.int64_val(); }, is_collective,
     [](const ChakraNode& n, Attribute& a) { a.set_int64_val(n.comm_type); }},
    {"comm_size", Attribute::kInt64Val, [](const Attribute& a, ChakraNode& n) { n.comm_size = a.int64_val(); },
     [](const ChakraNode& n) { return is_collective(n) || is_half(n); }, [](const ChakraNode& n, Attribute& a) { a.set_int64_val(n.comm_size); }},
    {"involved_dim", Attribute::kBoolList,
     [](const Attribute& a, ChakraNode& n) { n.involved_dim.assign(a.bool_list().values().begin(), a.bool_list().values().end()); },
     [](const ChakraNode& n) { return is_collective(n) && !n.involved_dim.empty(); },
     [](const ChakraNode& n, Attribute& a) {
       for (const bool involved : n.involved_dim) a.mutable_bool_list()->add_values(involved);
     }},
    {"pg_name", Attribute::kStringVal, [](const Attribute& a, ChakraNode& n) { n.pg_name = a.string_val(); },
     [](const ChakraNode& n) { return (is_collective(n) || is_half(n)) && !n.pg_name.empty(); },
     [](const ChakraNode& n, Attribute& a) { a.set_string_val(n.pg_name); }},
    {"comm_priority", Attribute::kInt32Val, [](const Attribute& a, ChakraNode& n) { n.comm_priority = a.int32_val(); },
     [](const ChakraNode& n) { return is_collective(n) && n.comm_priority != 0; },
     [](const ChakraNode& n, Attribute& a) { a.set_int32_val(n.comm_priority); }},
    {"comm_src", Attribute::kInt32Val, [](const Attribute& a, ChakraNode& n) { n.comm_src = a.int32_val(); },
     [](const ChakraNode& n) { return is_half(n) && n.comm_src.has_value(); },
     [](const ChakraNode& n, Attribute& a) { a.set_int32_val(*n.comm_src); }},
    {"comm_dst", Attribute::kInt32Val, [](const Attribute& a, ChakraNode& n) { n.comm_dst = a.int32_val(); },
     [](const ChakraNode& n) { return is_half(n) && n.comm_dst.has_value(); },
     [](const ChakraNode& n, Attribute& a) { a.set_int32_val(*n.comm_dst); }},
    {"comm_tag", Attribute::kInt32Val, [](const Attribute& a, ChakraNode& n) { n.comm_tag = a.int32_val(); }, is_half,
     [](const ChakraNode& n, Attribute& a) { a.set_int32_val(n.comm_tag); }},
    // podsim's own.
    {"duration_ps", Attribute::kUint64Val,
     [](const Attribute& a, ChakraNode& n) { n.extension.duration = Picoseconds{static_cast<std::int64_t>(a.uint64_val())}; },
     [](const ChakraNode& n) { return n.extension.duration.has_value(); },
     [](const ChakraNode& n, Attribute& a) { a.set_uint64_val(static_cast<std::uint64_t>(n.extension.duration->count())); }},
    {"work_s", Attribute::kDoubleList,
     [](const Attribute& a, ChakraNode& n) { n.extension.work_s.assign(a.double_list().values().begin(), a.double_list().values().end()); },
     [](const ChakraNode& n) { return !n.extension.work_s.empty(); },
     [](const ChakraNode& n, Attribute& a) {
       for (const double seconds : n.extension.work_s) a.mutable_double_list()->add_values(seconds);
     }},
    {"dma", Attribute::kBoolVal, [](const Attribute& a, ChakraNode& n) { n.extension.dma = a.bool_val(); },
     [](const ChakraNode& n) { return n.extension.dma; }, [](const ChakraNode&, Attribute& a) { a.set_bool_val(true); }},
    {"launch", Attribute::kBoolVal, [](const Attribute& a, ChakraNode& n) { n.extension.launch = a.bool_val(); },
     [](const ChakraNode& n) { return n.extension.launch; }, [](const ChakraNode&, Attribute& a) { a.set_bool_val(true); }},
    {"adds", Attribute::kBoolVal, [](const Attribute& a, ChakraNode& n) { n.extension.adds = a.bool_val(); },
     [](const ChakraNode& n) { return n.extension.adds; }, [](const ChakraNode&, Attribute& a) { a.set_bool_val(true); }},
    {"rendezvous", Attribute::kBoolVal, [](const Attribute& a, ChakraNode& n) { n.extension.waits = a.bool_val(); },
     [](const ChakraNode& n) { return n.extension.waits; }, [](const ChakraNode&, Attribute& a) { a.set_bool_val(true); }},
    {"shift_axis", Attribute::kStringVal, [](const Attribute& a, ChakraNode& n) { n.extension.shift_axis = a.string_val(); },
     [](const ChakraNode& n) { return !n.extension.shift_axis.empty(); },
     [](const ChakraNode& n, Attribute& a) { a.set_string_val(n.extension.shift_axis); }},
    {"shift_by", Attribute::kInt64Val, [](const Attribute& a, ChakraNode& n) { n.extension.shift_by = a.int64_val(); },
     [](const ChakraNode& n) { return !n.extension.shift_axis.empty(); },
     [](const ChakraNode& n, Attribute& a) { a.set_int64_val(n.extension.shift_by); }},
    {"axes", Attribute::kStringVal, [](const Attribute& a, ChakraNode& n) { n.extension.axes = a.string_val(); },
     [](const ChakraNode& n) { return !n.extension.axes.empty(); }, [](const ChakraNode& n, Attribute& a) { a.set_string_val(n.extension.axes); }},
    {"dtype", Attribute::kStringVal, [](const Attribute& a, ChakraNode& n) { n.extension.dtype = a.string_val(); },
     [](const ChakraNode& n) { return !n.extension.dtype.empty(); }, [](const ChakraNode& n, Attribute& a) { a.set_string_val(n.extension.dtype); }},
    {"input_extents", Attribute::kInt64List, [](const Attribute& a, ChakraNode& n) { n.extension.input_extents = list_of(a); },
     [](const ChakraNode& n) { return !n.extension.input_extents.empty(); },
     [](const ChakraNode& n, Attribute& a) { write_list(n.extension.input_extents, a); }},
    {"output_extents", Attribute::kInt64List, [](const Attribute& a, ChakraNode& n) { n.extension.output_extents = list_of(a); },
     [](const ChakraNode& n) { return !n.extension.output_extents.empty(); },
     [](const ChakraNode& n, Attribute& a) { write_list(n.extension.output_extents, a); }},
    {"dim", Attribute::kInt64Val, [](const Attribute& a, ChakraNode& n) { n.extension.dim = a.int64_val(); },
     [](const ChakraNode& n) { return n.extension.dim != 0; }, [](const ChakraNode& n, Attribute& a) { a.set_int64_val(n.extension.dim); }},
    {"split_dim", Attribute::kInt64Val, [](const Attribute& a, ChakraNode& n) { n.extension.split_dim = a.int64_val(); },
     [](const ChakraNode& n) { return n.extension.split_dim != 0; },
     [](const ChakraNode& n, Attribute& a) { a.set_int64_val(n.extension.split_dim); }},
    {"root", Attribute::kInt64Val, [](const Attribute& a, ChakraNode& n) { n.extension.root = a.int64_val(); },
     [](const ChakraNode& n) { return n.extension.root != 0; }, [](const ChakraNode& n, Attribute& a) { a.set_int64_val(n.extension.root); }},
    {"in_place", Attribute::kBoolVal, [](const Attribute& a, ChakraNode& n) { n.extension.in_place = a.bool_val(); },
     [](const ChakraNode& n) { return n.extension.in_place; }, [](const ChakraNode&, Attribute& a) { a.set_bool_val(true); }},
    {"origin_kind", Attribute::kStringVal, [](const Attribute& a, ChakraNode& n) { n.extension.origin_kind = a.string_val(); }, has_origin,
     [](const ChakraNode& n, Attribute& a) { a.set_string_val(n.extension.origin_kind); }},
    {"origin_axis", Attribute::kStringVal, [](const Attribute& a, ChakraNode& n) { n.extension.origin_axis = a.string_val(); }, has_origin,
     [](const ChakraNode& n, Attribute& a) { a.set_string_val(n.extension.origin_axis); }},
    {"origin", Attribute::kInt64Val, [](const Attribute& a, ChakraNode& n) { n.extension.origin = a.int64_val(); }, has_origin,
     [](const ChakraNode& n, Attribute& a) { a.set_int64_val(n.extension.origin); }},
    {"origin_bytes", Attribute::kInt64List,
     [](const Attribute& a, ChakraNode& n) {
       if (a.int64_list().values_size() == 2)
         n.extension.origin_input_bytes = a.int64_list().values(0), n.extension.origin_own_block = a.int64_list().values(1);
     },
     has_origin,
     [](const ChakraNode& n, Attribute& a) {
       write_list({n.extension.origin_input_bytes, n.extension.origin_own_block}, a);
     }},
    {"route_order", Attribute::kInt64List, [](const Attribute& a, ChakraNode& n) { n.extension.route_order = list_of(a); },
     [](const ChakraNode& n) { return !n.extension.route_order.empty(); },
     [](const ChakraNode& n, Attribute& a) { write_list(n.extension.route_order, a); }},
}};

/// "int64_val" of a variant.
std::string variant_name(Attribute::ValueCase variant) {
  if (variant == Attribute::VALUE_NOT_SET) return "no value";
  const google::protobuf::FieldDescriptor* field = Attribute::descriptor()->FindFieldByNumber(variant);
  return field == nullptr ? "no value" : field->name();
}

}  // namespace

std::string read_attributes(const ChakraProtoMsg::Node& message, ChakraNode& node) {
  std::uint64_t seen = 0;
  for (const Attribute& attribute : message.attr())
    for (std::size_t r = 0; r < rules.size(); ++r) {
      const Rule& rule = rules[r];
      if (rule.name != attribute.name()) continue;
      if (attribute.value_case() != rule.variant)
        return fmt::format("attribute {}: expected {}, found {}, which readers of this format take for 0", rule.name, variant_name(rule.variant),
                           variant_name(attribute.value_case()));
      if (seen >> r & 1) return fmt::format("attribute {}: expected it once, found it twice", rule.name);
      seen |= std::uint64_t{1} << r;
      rule.read(attribute, node);
    }
  return {};
}

void write_attributes(const ChakraNode& node, ChakraProtoMsg::Node& message) {
  for (const Rule& rule : rules) {
    if (!rule.belongs(node)) continue;
    Attribute& attribute = *message.add_attr();
    attribute.set_name(std::string{rule.name});
    rule.write(node, attribute);
  }
}

}  // namespace podsim

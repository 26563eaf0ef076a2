#include "workloads/hlo/hlo_proto_attributes.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <optional>
#include <unordered_set>
#include <utility>
#include <vector>

#include "workloads/hlo/hlo_cursor.hpp"
#include "workloads/hlo/hlo_proto_values.hpp"
#include "workloads/hlo/replica_groups.hpp"
#include "workloads/hlo/xla_hlo.pb.h"

namespace podsim {

std::string in_quotes(std::string_view text) {
  std::string escaped = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') escaped += '\\';
    if (c == '\n')
      escaped += "\\n";
    else
      escaped += c;
  }
  return escaped + '"';
}

namespace {

constexpr std::int64_t most_listed_devices = std::int64_t{1} << 24, most_transposed = 64;  // as the text's reader takes

/// A list in braces.
template <class Numbers>
std::string in_braces(const Numbers& numbers) {
  return fmt::format("{{{}}}", fmt::join(numbers, ","));
}

std::string index_text(const google::protobuf::RepeatedField<std::int64_t>& index) { return fmt::format("{{{}}}", fmt::join(index, ", ")); }

class AttributesText {
 public:
  Expected<std::string> write(const xla::HloInstruction& instruction) {
    std::string text;
    if (!write_all(instruction, text)) return *std::move(error_);
    return text;
  }

 private:
  bool write_all(const xla::HloInstruction& instruction, std::string& text) {
    dimensions(instruction, text);
    if (!instruction.fft_length().empty()) {
      constexpr std::array<std::string_view, 4> kinds{"FFT", "IFFT", "RFFT", "IRFFT"};
      if (instruction.fft_type() < 0 || instruction.fft_type() > 3) return fail("expected the number of a Fourier transform");
      text +=
          fmt::format(", fft_type={}, fft_length={}", kinds[static_cast<std::size_t>(instruction.fft_type())], in_braces(instruction.fft_length()));
    }
    if (!communication(instruction, text)) return false;
    window(instruction.window(), text);
    if (instruction.has_convolution_dimension_numbers() && !convolution(instruction.convolution_dimension_numbers(), text)) return false;
    if (instruction.feature_group_count() > 1) text += fmt::format(", feature_group_count={}", instruction.feature_group_count());
    if (instruction.batch_group_count() > 1) text += fmt::format(", batch_group_count={}", instruction.batch_group_count());
    product(instruction, text);
    indices(instruction, text);
    others(instruction, text);
    if (instruction.opcode() == "custom-call" && !custom_call(instruction, text)) return false;
    aliases(instruction, text);
    return true;
  }

  bool fail(std::string message) {
    if (!error_) error_ = Diagnostic{{}, std::move(message)};
    return false;
  }

  static void dimensions(const xla::HloInstruction& instruction, std::string& text) {
    if (instruction.opcode() == "iota") {
      text += fmt::format(", iota_dimension={}", instruction.dimensions().empty() ? 0 : instruction.dimensions(0));
    } else if (!instruction.dimensions().empty() || instruction.opcode() == "broadcast") {
      text += ", dimensions=" + in_braces(instruction.dimensions());
    }
    if (!instruction.slice_dimensions().empty()) {
      std::vector<std::string> extents;
      for (const auto& slice : instruction.slice_dimensions())
        extents.push_back(fmt::format("[{}:{}:{}]", slice.start(), slice.limit(), slice.stride()));
      text += fmt::format(", slice={{{}}}", fmt::join(extents, ", "));
    }
    if (!instruction.dynamic_slice_sizes().empty()) text += ", dynamic_slice_sizes=" + in_braces(instruction.dynamic_slice_sizes());
    if (instruction.padding_config().dimensions_size() > 0) {
      std::vector<std::string> dims;
      for (const auto& padding : instruction.padding_config().dimensions())
        dims.push_back(fmt::format("{}_{}_{}", padding.edge_padding_low(), padding.edge_padding_high(), padding.interior_padding()));
      text += fmt::format(", padding={}", fmt::join(dims, "x"));
    }
    if (instruction.opcode() == "get-tuple-element") text += fmt::format(", index={}", instruction.tuple_index());
  }

  static void window(const xla::Window& window, std::string& text) {
    if (window.dimensions().empty()) return;
    using Dimension = xla::WindowDimension;
    const auto each = [&](auto value) {
      std::vector<std::string> values;
      for (const Dimension& dimension : window.dimensions()) values.push_back(value(dimension));
      return fmt::format("{}", fmt::join(values, "x"));
    };
    text += fmt::format(", window={{size={} stride={} pad={} lhs_dilate={} rhs_dilate={} rhs_reversal={}}}",
                        each([](const Dimension& d) { return std::to_string(d.size()); }),
                        each([](const Dimension& d) { return std::to_string(d.stride()); }),
                        each([](const Dimension& d) { return fmt::format("{}_{}", d.padding_low(), d.padding_high()); }),
                        each([](const Dimension& d) { return std::to_string(d.base_dilation()); }),
                        each([](const Dimension& d) { return std::to_string(d.window_dilation()); }),
                        each([](const Dimension& d) { return std::string{d.window_reversal() ? "1" : "0"}; }));
  }

  /// "bf01": the dimensions of one array by their letters.
  bool labels(char first_letter, std::int64_t first, char second_letter, std::int64_t second,
              const google::protobuf::RepeatedField<std::int64_t>& spatial, std::string& text) {
    std::string names(static_cast<std::size_t>(spatial.size()) + 2, ' ');
    const auto put = [&](std::int64_t at, char letter) {
      if (at < 0 || static_cast<std::size_t>(at) >= names.size() || names[static_cast<std::size_t>(at)] != ' ')
        return fail("expected every dimension of a convolution once");
      names[static_cast<std::size_t>(at)] = letter;
      return true;
    };
    if (spatial.size() > 10) return fail("expected at most 10 spatial dimensions");
    if (!put(first, first_letter) || !put(second, second_letter)) return false;
    for (int d = 0; d < spatial.size(); ++d)
      if (!put(spatial[d], static_cast<char>('0' + d))) return false;
    text += names;
    return true;
  }

  bool convolution(const xla::ConvolutionDimensionNumbers& dims, std::string& text) {
    text += ", dim_labels=";
    if (!labels('b', dims.input_batch_dimension(), 'f', dims.input_feature_dimension(), dims.input_spatial_dimensions(), text)) return false;
    text += '_';
    if (!labels('i', dims.kernel_input_feature_dimension(), 'o', dims.kernel_output_feature_dimension(), dims.kernel_spatial_dimensions(), text))
      return false;
    text += "->";
    return labels('b', dims.output_batch_dimension(), 'f', dims.output_feature_dimension(), dims.output_spatial_dimensions(), text);
  }

  static void product(const xla::HloInstruction& instruction, std::string& text) {
    const bool ragged = instruction.has_ragged_dot_dimension_numbers();
    if (ragged || instruction.has_dot_dimension_numbers()) {
      const xla::DotDimensionNumbers& dims =
          ragged ? instruction.ragged_dot_dimension_numbers().dot_dimension_numbers() : instruction.dot_dimension_numbers();
      for (const auto& [name, numbers] : {std::pair{"lhs_batch_dims", &dims.lhs_batch_dimensions()},
                                          {"lhs_contracting_dims", &dims.lhs_contracting_dimensions()},
                                          {"rhs_batch_dims", &dims.rhs_batch_dimensions()},
                                          {"rhs_contracting_dims", &dims.rhs_contracting_dimensions()}})
        if (!numbers->empty()) text += fmt::format(", {}={}", name, in_braces(*numbers));
      if (ragged)
        text += fmt::format(", lhs_ragged_dims={}, rhs_group_dims={}", in_braces(instruction.ragged_dot_dimension_numbers().lhs_ragged_dimensions()),
                            in_braces(instruction.ragged_dot_dimension_numbers().rhs_group_dimensions()));
    }
    const auto& precision = instruction.precision_config().operand_precision();
    if (std::ranges::any_of(precision, [](int one) { return one != 0; })) {
      std::vector<std::string_view> names;
      for (const int one : precision) names.emplace_back(one == 1 ? "high" : one == 2 ? "highest" : "default");
      text += fmt::format(", operand_precision={{{}}}", fmt::join(names, ","));
    }
    constexpr std::array<std::string_view, 14> algorithms{"",
                                                          "dot_any_f8_any_f8_f32",
                                                          "dot_any_f8_any_f8_f32_fast_accum",
                                                          "dot_f16_f16_f16",
                                                          "dot_f16_f16_f32",
                                                          "dot_bf16_bf16_bf16",
                                                          "dot_bf16_bf16_f32",
                                                          "dot_bf16_bf16_f32_x3",
                                                          "dot_bf16_bf16_f32_x6",
                                                          "dot_tf32_tf32_f32",
                                                          "dot_tf32_tf32_f32_x3",
                                                          "dot_f32_f32_f32",
                                                          "dot_f64_f64_f64",
                                                          "dot_bf16_bf16_f32_x9"};
    const int algorithm = instruction.precision_config().algorithm();
    if (algorithm > 0 && static_cast<std::size_t>(algorithm) < algorithms.size())
      text += fmt::format(", algorithm={}", algorithms[static_cast<std::size_t>(algorithm)]);
  }

  /// Of gathers, scatters and sorts.
  static void indices(const xla::HloInstruction& instruction, std::string& text) {
    const auto lists = [&](std::initializer_list<std::pair<std::string_view, const google::protobuf::RepeatedField<std::int64_t>*>> all) {
      for (const auto& [name, numbers] : all) text += fmt::format(", {}={}", name, in_braces(*numbers));
    };
    if (instruction.has_gather_dimension_numbers()) {
      const xla::GatherDimensionNumbers& dims = instruction.gather_dimension_numbers();
      lists({{"offset_dims", &dims.offset_dims()},
             {"collapsed_slice_dims", &dims.collapsed_slice_dims()},
             {"start_index_map", &dims.start_index_map()}});
      if (!dims.operand_batching_dims().empty()) lists({{"operand_batching_dims", &dims.operand_batching_dims()}});
      if (!dims.start_indices_batching_dims().empty()) lists({{"start_indices_batching_dims", &dims.start_indices_batching_dims()}});
      text += fmt::format(", index_vector_dim={}", dims.index_vector_dim());
      lists({{"slice_sizes", &instruction.gather_slice_sizes()}});
    }
    if (instruction.has_scatter_dimension_numbers()) {
      const xla::ScatterDimensionNumbers& dims = instruction.scatter_dimension_numbers();
      lists({{"update_window_dims", &dims.update_window_dims()},
             {"inserted_window_dims", &dims.inserted_window_dims()},
             {"scatter_dims_to_operand_dims", &dims.scatter_dims_to_operand_dims()}});
      if (!dims.input_batching_dims().empty()) lists({{"input_batching_dims", &dims.input_batching_dims()}});
      if (!dims.scatter_indices_batching_dims().empty()) lists({{"scatter_indices_batching_dims", &dims.scatter_indices_batching_dims()}});
      text += fmt::format(", index_vector_dim={}", dims.index_vector_dim());
    }
    if (instruction.indices_are_sorted()) text += ", indices_are_sorted=true";
    if (instruction.unique_indices()) text += ", unique_indices=true";
    if (instruction.is_stable()) text += ", is_stable=true";
  }

  static void others(const xla::HloInstruction& instruction, std::string& text) {
    const std::string& opcode = instruction.opcode();
    if (!instruction.fusion_kind().empty()) text += fmt::format(", kind={}", instruction.fusion_kind());
    if (!instruction.comparison_direction().empty()) text += fmt::format(", direction={}", instruction.comparison_direction());
    if (instruction.comparison_type() == "TOTALORDER") text += ", type=TOTALORDER";
    if (instruction.exponent_bits() != 0 || instruction.mantissa_bits() != 0)
      text += fmt::format(", exponent_bits={}, mantissa_bits={}", instruction.exponent_bits(), instruction.mantissa_bits());
    if (opcode == "triangular-solve") {
      const xla::TriangularSolveOptions& options = instruction.triangular_solve_options();
      constexpr std::array<std::string_view, 4> transposes{"TRANSPOSE_INVALID", "NO_TRANSPOSE", "TRANSPOSE", "ADJOINT"};
      for (const auto& [name, given] :
           {std::pair{"left_side", options.left_side()}, {"lower", options.lower()}, {"unit_diagonal", options.unit_diagonal()}})
        if (given) text += fmt::format(", {}=true", name);
      if (options.transpose_a() >= 0 && options.transpose_a() < 4)
        text += fmt::format(", transpose_a={}", transposes[static_cast<std::size_t>(options.transpose_a())]);
    }
    if (opcode == "cholesky" && instruction.cholesky_options().lower()) text += ", lower=true";
    if (opcode == "topk") text += fmt::format(", k={}, largest={}", instruction.k(), instruction.largest());
    if (instruction.is_host_transfer()) text += ", is_host_transfer=true";
    if (instruction.is_composite()) text += ", is_composite=true";
    if (instruction.has_cross_program_prefetch_index())
      text += fmt::format(", cross_program_prefetch_index={}", instruction.cross_program_prefetch_index());
  }

  bool custom_call(const xla::HloInstruction& instruction, std::string& text) {
    text += ", custom_call_target=" + in_quotes(instruction.custom_call_target());
    if (instruction.constrain_layout()) {
      std::string shapes;
      for (const xla::Shape& shape : instruction.operand_shapes_with_layout()) {
        if (!shapes.empty()) shapes += ", ";
        const auto read = shape_of_proto(shape);
        if (!read) return fail(read.error().message);
        shapes += to_text(*read);
      }
      text += fmt::format(", operand_layout_constraints={{{}}}", shapes);
    }
    if (instruction.custom_call_has_side_effect()) text += ", custom_call_has_side_effect=true";
    if (instruction.custom_call_schedule() == 1) text += ", custom_call_schedule=SCHEDULE_LATEST";
    if (instruction.custom_call_schedule() == 2) text += ", custom_call_schedule=SCHEDULE_EARLIEST";
    constexpr std::array<std::string_view, 5> versions{"", "", "API_VERSION_STATUS_RETURNING", "API_VERSION_STATUS_RETURNING_UNIFIED",
                                                       "API_VERSION_TYPED_FFI"};
    const int version = instruction.custom_call_api_version();
    if (version > 1 && static_cast<std::size_t>(version) < versions.size())
      text += fmt::format(", api_version={}", versions[static_cast<std::size_t>(version)]);
    return true;
  }

  static void aliases(const xla::HloInstruction& instruction, std::string& text) {
    std::vector<std::string> pairs;
    for (const auto& pair : instruction.output_operand_aliasing())
      pairs.push_back(
          fmt::format("{}: ({}, {})", index_text(pair.output_shape_index()), pair.operand_index(), index_text(pair.operand_shape_index())));
    if (!pairs.empty()) text += fmt::format(", output_to_operand_aliasing={{{}}}", fmt::join(pairs, ", "));
  }

  bool communication(const xla::HloInstruction& instruction, std::string& text) {
    if (instruction.channel_id() > 0) text += fmt::format(", channel_id={}", instruction.channel_id());
    if (!replica_groups(instruction, text)) return false;
    if (!instruction.source_target_pairs().empty()) {
      std::vector<std::string> pairs;
      for (const auto& pair : instruction.source_target_pairs()) pairs.push_back(fmt::format("{{{},{}}}", pair.source(), pair.target()));
      text += fmt::format(", source_target_pairs={{{}}}", fmt::join(pairs, ","));
    }
    if (instruction.opcode() != "custom-call" && instruction.constrain_layout()) text += ", constrain_layout=true";
    if (instruction.use_global_device_ids()) text += ", use_global_device_ids=true";
    return true;
  }

  bool replica_groups(const xla::HloInstruction& instruction, std::string& text) {
    static const std::unordered_set<std::string_view> grouped{"all-reduce",     "all-reduce-start", "all-gather",        "all-gather-start",
                                                              "reduce-scatter", "all-to-all",       "ragged-all-to-all", "collective-broadcast"};
    const xla::CollectiveDeviceList& list = instruction.collective_device_list();
    Expected<ReplicaGroups> groups = ReplicaGroups{};
    if (instruction.has_mesh_axes_replica_group_list())
      groups = mesh_groups(instruction.mesh_axes_replica_group_list());
    else if (instruction.has_iota_collective_device_list())
      groups = iota_groups(instruction.iota_collective_device_list());
    else if (list.has_iota_replica_group_list())
      groups = iota_groups(list.iota_replica_group_list());
    else if (const auto& listed = !list.replica_groups().empty() ? list.replica_groups() : instruction.replica_groups(); !listed.empty())
      groups = listed_groups(listed);
    else if (!grouped.contains(instruction.opcode()))
      return true;
    if (!groups) return fail(groups.error().message);
    text += ", replica_groups=" + to_text(*groups);
    return true;
  }

  static Expected<ReplicaGroups> listed_groups(const google::protobuf::RepeatedPtrField<xla::ReplicaGroup>& listed) {
    std::vector<std::vector<std::int64_t>> groups;
    for (const xla::ReplicaGroup& group : listed) groups.emplace_back(group.replica_ids().begin(), group.replica_ids().end());
    if (std::ranges::any_of(groups, [](const auto& group) { return group.empty(); }))
      return Diagnostic{{}, "expected devices in every replica group"};
    return ReplicaGroups::of_list(groups);
  }

  static Expected<ReplicaGroups> iota_groups(const xla::IotaReplicaGroupList& iota) {
    std::vector<int> transpose(iota.iota_transpose_perm().begin(), iota.iota_transpose_perm().end());
    if (std::ranges::is_sorted(transpose)) transpose.clear();
    return ReplicaGroups::of_iota({iota.num_replica_groups(), iota.num_devices_per_group()},
                                  {iota.iota_reshape_dims().begin(), iota.iota_reshape_dims().end()}, transpose, {});
  }

  static Expected<ReplicaGroups> mesh_groups(const xla::MeshAxesReplicaGroupList& list) {
    std::vector<ReplicaGroups::Axis> axes;
    for (const auto& axis : list.mesh().axes()) {
      if (axis.name().find('\'') != std::string::npos)
        return Diagnostic{{}, "expected the name of an axis without quotation marks, found " + quoted(axis.name())};
      axes.push_back({axis.name(), axis.size()});
    }
    std::vector<std::int64_t> ids(list.mesh().device_ids().begin(), list.mesh().device_ids().end());
    if (list.mesh().has_iota_transform()) {
      const auto& iota = list.mesh().iota_transform();
      std::int64_t devices = 1;
      for (const std::int64_t size : iota.reshape_dims())
        if (size < 1 || size > most_listed_devices / devices)
          return Diagnostic{{}, "expected a mesh of at most 2^24 devices"};
        else
          devices *= size;
      std::vector<int> transpose;
      for (const std::int64_t d : iota.transpose_perm()) transpose.push_back(static_cast<int>(std::clamp<std::int64_t>(d, -1, most_transposed)));
      const auto row = ReplicaGroups::of_iota({1, devices}, {iota.reshape_dims().begin(), iota.reshape_dims().end()}, transpose, {});
      if (!row) return row.error();
      ids = row->devices(0);
      if (std::ranges::is_sorted(ids)) ids.clear();
    }
    std::vector<ReplicaGroups::AxisPart> listed;
    for (const auto& axis : list.axes()) {
      if (axis.mesh_axis_index() < 0 || axis.mesh_axis_index() >= static_cast<std::int64_t>(axes.size()))
        return Diagnostic{{}, fmt::format("expected an axis of the mesh, found number {}", axis.mesh_axis_index())};
      ReplicaGroups::AxisPart part{static_cast<int>(axis.mesh_axis_index())};
      if (axis.has_sub_axis_info()) part.before = axis.sub_axis_info().pre_size(), part.size = axis.sub_axis_info().size();
      listed.push_back(part);
    }
    return ReplicaGroups::of_mesh(std::move(axes), std::move(ids), std::move(listed), {});
  }

  std::optional<Diagnostic> error_;
};

}  // namespace

Expected<std::string> attributes_of_proto(const xla::HloInstruction& instruction) { return AttributesText{}.write(instruction); }

std::string frontend_text(const xla::FrontendAttributes& attributes) {
  std::vector<std::pair<std::string, std::string>> entries;
  for (const auto& entry : attributes.map()) entries.emplace_back(entry.key(), entry.value());
  std::sort(entries.begin(), entries.end());
  std::string text;
  for (const auto& [key, value] : entries) {
    HloCursor cursor{value, 0, {}};
    const bool braces = value.starts_with('{') && value.find('\n') == std::string::npos && cursor.take_balanced() && cursor.ended();
    text += fmt::format("{}{}={}", text.empty() ? "" : ",", key, braces ? value : in_quotes(value));
  }
  return '{' + text + '}';
}

std::string sharding_text(const xla::OpSharding& sharding) {
  // OpSharding::Type
  switch (sharding.type()) {
    case 0: return "{replicated}";
    case 1: return fmt::format("{{maximal device={}}}", sharding.tile_assignment_devices().empty() ? 0 : sharding.tile_assignment_devices(0));
    case 2: {
      std::vector<std::string> elements;
      for (const xla::OpSharding& element : sharding.tuple_shardings()) elements.push_back(sharding_text(element));
      return fmt::format("{{{}}}", fmt::join(elements, ", "));
    }
    case 3: break;
    case 4: return "{manual}";
    case 6: return "{unreduced}";
    default: return "{unknown}";
  }
  std::string text = fmt::format("{{devices=[{}]", fmt::join(sharding.tile_assignment_dimensions(), ","));
  if (sharding.iota_reshape_dims().empty()) {
    text += fmt::format("{}", fmt::join(sharding.tile_assignment_devices(), ","));
  } else {
    text += fmt::format("<=[{}]", fmt::join(sharding.iota_reshape_dims(), ","));
    if (!std::ranges::is_sorted(sharding.iota_transpose_perm())) text += fmt::format("T({})", fmt::join(sharding.iota_transpose_perm(), ","));
  }
  if (sharding.replicate_on_last_tile_dim()) text += " last_tile_dim_replicate";
  constexpr std::array<std::string_view, 7> names{"replicated", "maximal", "tuple", "other", "manual", "unknown", "unreduced"};
  std::vector<std::string_view> last;
  for (const int type : sharding.last_tile_dims())
    last.push_back(type >= 0 && static_cast<std::size_t>(type) < names.size() ? names[static_cast<std::size_t>(type)] : "unknown");
  if (!last.empty()) text += fmt::format(" last_tile_dims={{{}}}", fmt::join(last, ", "));
  return text + '}';
}

}  // namespace podsim

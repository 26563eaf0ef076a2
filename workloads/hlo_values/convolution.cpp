// convolution: for each pair of an output position and a window position that meet an element of the input, a product of matrices.
#include <fmt/format.h>

#include "workloads/hlo_values/products.hpp"
#include "workloads/hlo_values/strided.hpp"

namespace podsim {

namespace {

using Dims = std::vector<std::int64_t>;

/// The input position that output position `out` and window position `tap` meet; -1: padding or a hole between dilated elements.
std::int64_t input_position(const HloWindowDimension& window, std::int64_t size, std::int64_t out, std::int64_t tap) {
  const std::int64_t position = out * window.stride + tap * window.rhs_dilate - window.pad_low;
  if (position < 0 || position % window.lhs_dilate != 0) return -1;
  return position / window.lhs_dilate < size ? position / window.lhs_dilate : -1;
}

/// Every combination of an output and a tap position of all spatial dimensions: offsets in units of matrices of input, kernel and output.
struct Meeting {
  std::int64_t input = 0, kernel = 0, output = 0;
};
std::vector<Meeting> meetings_of(const std::vector<HloWindowDimension>& windows, const Dims& inputs, const Dims& outputs) {
  std::vector<Meeting> meetings{{}};
  for (std::size_t d = 0; d < windows.size(); ++d) {
    std::vector<Meeting> next;
    for (const Meeting& before : meetings)
      for (std::int64_t out = 0; out < outputs[d]; ++out)
        for (std::int64_t tap = 0; tap < windows[d].size; ++tap) {
          const std::int64_t position = input_position(windows[d], inputs[d], out, tap);
          if (position < 0) continue;
          const std::int64_t kernel = windows[d].reversal ? windows[d].size - 1 - tap : tap;
          next.push_back({before.input * inputs[d] + position, before.kernel * windows[d].size + kernel, before.output * outputs[d] + out});
        }
    meetings = std::move(next);
  }
  return meetings;
}

Dims picked(const Dims& dims, const std::vector<int>& which) {
  Dims result;
  for (const int d : which) result.push_back(dims[static_cast<std::size_t>(d)]);
  return result;
}

/// Spatial dimensions, then two others: the order of dimensions in which every matrix is contiguous.
Dims spatial_first(const std::vector<int>& spatial, int second_last, int last) {
  Dims order(spatial.begin(), spatial.end());
  order.push_back(second_last);
  order.push_back(last);
  return order;
}

}  // namespace

Expected<HloArrays> convolution_operation(const ArrayOperation& operation) {
  if (const auto ok = operation.takes(2); !ok) return ok.error();
  const HloArray &x = operation.operand(0), &w = operation.operand(1);
  const HloShape& shape = operation.shape();
  const HloAttributes& attributes = operation.attributes();
  const HloType type = shape.type;
  if (!attributes.convolution) return operation.error("expected dim_labels");
  if (is_float(x.type) != is_float(type) || is_float(w.type) != is_float(type) || type == HloType::pred || !has_values(type))
    return operation.error(fmt::format("a convolution of {} and {} to {} is not interpreted", name_of(x.type), name_of(w.type), name_of(type)));
  const HloConvolutionDims& labels = *attributes.convolution;
  const std::size_t spatial = labels.input_spatial.size();
  std::vector<HloWindowDimension> windows = attributes.window;
  if (x.dims.size() != spatial + 2 || w.dims.size() != spatial + 2 || shape.rank() != spatial + 2 || windows.size() != spatial)
    return operation.error(fmt::format("expected {} spatial dimensions of input, kernel, result and window", spatial));

  const Dims inputs = picked(x.dims, labels.input_spatial), taps = picked(w.dims, labels.kernel_spatial),
             outputs = picked(shape.dims, labels.output_spatial);
  double pairs = 1;
  for (std::size_t d = 0; d < spatial; ++d) {
    const HloWindowDimension& window = windows[d];
    if (!is_sane(window)) return operation.error("expected numbers of a window up to 2^31");
    const auto spread = [](std::int64_t size, std::int64_t dilation) { return size == 0 ? 0 : (size - 1) * dilation + 1; };
    const std::int64_t padded = window.pad_low + spread(inputs[d], window.lhs_dilate) + window.pad_high,
                       reach = spread(window.size, window.rhs_dilate);
    const std::int64_t positions = padded < reach || padded <= 0 ? 0 : (padded - reach) / window.stride + 1;
    if (taps[d] != window.size || positions != outputs[d])
      return operation.error(fmt::format("expected a kernel of the window's size and {} positions of it in spatial dimension {}", positions, d));
    pairs *= static_cast<double>(outputs[d]) * static_cast<double>(window.size);
  }
  const std::int64_t batch = x.dims[to_size(labels.input_batch)], features = x.dims[to_size(labels.input_feature)],
                     inner = w.dims[to_size(labels.kernel_input)], columns = w.dims[to_size(labels.kernel_output)],
                     groups = attributes.feature_group_count, batch_groups = attributes.batch_group_count;
  if (groups < 1 || batch_groups < 1 || (groups > 1 && batch_groups > 1) || features % groups != 0 || features / groups != inner ||
      columns % groups != 0 || columns % batch_groups != 0 || batch % batch_groups != 0)
    return operation.error("expected features and batches that the groups divide");
  const std::int64_t rows = batch / batch_groups;
  if (shape.dims[to_size(labels.output_batch)] != rows || shape.dims[to_size(labels.output_feature)] != columns)
    return operation.error(fmt::format("expected a batch of {} with {} features, got {}", rows, columns, short_text(shape)));
  const double matrix = static_cast<double>(rows) * static_cast<double>(inner) * static_cast<double>(columns);
  if (pairs > 0x1p24) return operation.error("expected at most 2^24 pairs of an output and a window position");
  if (const auto ok = operation.spend(pairs * (1 + matrix)); !ok) return ok.error();

  const ProductFactors left{transposed(x, spatial_first(labels.input_spatial, labels.input_batch, labels.input_feature))},
                 right{transposed(w, spatial_first(labels.kernel_spatial, labels.kernel_input, labels.kernel_output))};
  Dims dims = outputs;
  dims.push_back(rows);
  dims.push_back(columns);
  ProductSum sum{operation, type, static_cast<std::size_t>(elements_of(shape))};
  // Group g makes its share of the output features: from its share of the input features, or of the batch.
  const std::int64_t all_groups = groups * batch_groups, share = columns / all_groups;
  for (const Meeting& meeting : meetings_of(windows, inputs, outputs)) {
    if (operation.budget.cancelled()) return cancelled_work();
    for (std::int64_t g = 0; g < all_groups; ++g) {
      const std::int64_t first_batch = batch_groups > 1 ? g * rows : 0, first_feature = groups > 1 ? g * inner : 0;
      sum.add({&left, to_size((meeting.input * batch + first_batch) * features + first_feature), to_size(features)},
              {&right, to_size(meeting.kernel * inner * columns + g * share), to_size(columns)}, to_size(meeting.output * rows * columns + g * share),
              to_size(columns), {rows, share, inner});
    }
  }
  const HloArray result = sum.result(std::move(dims));
  // Back to the order that the labels give.
  std::vector<std::int64_t> order(shape.rank());
  for (std::size_t d = 0; d < spatial; ++d) order[to_size(labels.output_spatial[d])] = static_cast<std::int64_t>(d);
  order[to_size(labels.output_batch)] = static_cast<std::int64_t>(spatial);
  order[to_size(labels.output_feature)] = static_cast<std::int64_t>(spatial) + 1;
  return HloArrays{transposed(result, order)};
}

}  // namespace podsim

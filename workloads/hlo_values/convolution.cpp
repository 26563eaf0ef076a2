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

Expected<HloArray> convolve(const ArrayOperation& operation, Convolved makes, const HloArray& a, const HloArray& b, const HloShape& shape) {
  const HloAttributes& attributes = operation.attributes();
  const HloType type = shape.type;
  if (!attributes.convolution) return operation.error("expected dim_labels");
  if (!has_products(a.type, b.type, type))
    return operation.error(fmt::format("a convolution of {} and {} to {} is not interpreted", name_of(a.type), name_of(b.type), name_of(type)));
  const Dims& x = makes == Convolved::input ? shape.dims : a.dims;
  const Dims& w = makes == Convolved::kernel ? shape.dims : b.dims;
  const Dims& y = makes == Convolved::output ? shape.dims : makes == Convolved::input ? a.dims : b.dims;
  const HloConvolutionDims& labels = *attributes.convolution;
  const std::size_t spatial = labels.input_spatial.size();
  const std::vector<HloWindowDimension>& windows = attributes.window;
  if (x.size() != spatial + 2 || w.size() != spatial + 2 || y.size() != spatial + 2 || windows.size() != spatial)
    return operation.error(fmt::format("expected {} spatial dimensions of input, kernel, result and window", spatial));

  const Dims inputs = picked(x, labels.input_spatial), taps = picked(w, labels.kernel_spatial), outputs = picked(y, labels.output_spatial);
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
  const std::int64_t batch = x[to_size(labels.input_batch)], features = x[to_size(labels.input_feature)], inner = w[to_size(labels.kernel_input)],
                     columns = w[to_size(labels.kernel_output)], groups = attributes.feature_group_count, batch_groups = attributes.batch_group_count;
  if (groups < 1 || batch_groups < 1 || (groups > 1 && batch_groups > 1) || features % groups != 0 || features / groups != inner ||
      columns % groups != 0 || columns % batch_groups != 0 || batch % batch_groups != 0 || (batch_groups > 1 && makes != Convolved::output))
    return operation.error("expected features and batches that the groups divide");
  const std::int64_t rows = batch / batch_groups;
  if (y[to_size(labels.output_batch)] != rows || y[to_size(labels.output_feature)] != columns)
    return operation.error(fmt::format("expected a batch of {} with {} features, got {}", rows, columns, short_text(shape)));
  const double matrix = static_cast<double>(rows) * static_cast<double>(inner) * static_cast<double>(columns);
  if (pairs > 0x1p24) return operation.error("expected at most 2^24 pairs of an output and a window position");
  if (const auto ok = operation.spend(pairs * (1 + matrix)); !ok) return ok.error();

  // Spatial dimensions, then the two of a matrix, as each of them is multiplied.
  const auto of_input = [&](bool turned) { return turned ? spatial_first(labels.input_spatial, labels.input_feature, labels.input_batch) : spatial_first(labels.input_spatial, labels.input_batch, labels.input_feature); };
  const auto of_kernel = [&](bool turned) { return turned ? spatial_first(labels.kernel_spatial, labels.kernel_output, labels.kernel_input) : spatial_first(labels.kernel_spatial, labels.kernel_input, labels.kernel_output); };
  const Dims of_output = spatial_first(labels.output_spatial, labels.output_batch, labels.output_feature);
  const Dims order_a = makes == Convolved::input ? of_output : of_input(makes == Convolved::kernel), order_b = makes == Convolved::kernel ? of_output : of_kernel(makes == Convolved::input),
             order = makes == Convolved::output ? of_output : makes == Convolved::input ? of_input(false) : of_kernel(false);
  const ProductFactors left{transposed(a, order_a), type}, right{transposed(b, order_b), type};
  ProductSum sum{operation, type, static_cast<std::size_t>(elements_of(shape))};
  // Group g makes its share of the output features: from its share of the input features, or of the batch.
  const std::int64_t all_groups = groups * batch_groups, share = columns / all_groups;
  for (const Meeting& meeting : meetings_of(windows, inputs, outputs)) {
    if (operation.budget.cancelled()) return cancelled_work();
    for (std::int64_t g = 0; g < all_groups; ++g) {
      const std::int64_t first_batch = batch_groups > 1 ? g * rows : 0, first_feature = groups > 1 ? g * inner : 0;
      const std::int64_t in_output = meeting.output * rows * columns + g * share, in_kernel = meeting.kernel * inner * columns;
      switch (makes) {
        case Convolved::output:  // [rows, inner] [inner, share]
          sum.add({&left, to_size((meeting.input * batch + first_batch) * features + first_feature), to_size(features)}, {&right, to_size(in_kernel + g * share), to_size(columns)},
                  to_size(in_output), to_size(columns), {rows, share, inner});
          break;
        case Convolved::input:  // [batch, share] [share, inner]
          sum.add({&left, to_size(in_output), to_size(columns)}, {&right, to_size(in_kernel + g * share * inner), to_size(inner)},
                  to_size(meeting.input * batch * features + first_feature), to_size(features), {batch, inner, share});
          break;
        case Convolved::kernel:  // [inner, batch] [batch, share]
          sum.add({&left, to_size((meeting.input * features + first_feature) * batch), to_size(batch)}, {&right, to_size(in_output), to_size(columns)},
                  to_size(in_kernel + g * share), to_size(columns), {inner, share, batch});
          break;
      }
    }
  }
  Dims dims, back(shape.rank());
  for (std::size_t d = 0; d < order.size(); ++d) {
    dims.push_back(shape.dims[to_size(order[d])]);
    back[to_size(order[d])] = static_cast<std::int64_t>(d);
  }
  return transposed(sum.result(std::move(dims)), back);
}

Expected<HloArrays> convolution_operation(const ArrayOperation& operation) {
  if (const auto ok = operation.takes(2); !ok) return ok.error();
  auto output = convolve(operation, Convolved::output, operation.operand(0), operation.operand(1), operation.shape());
  if (!output) return output.error();
  return HloArrays{*std::move(output)};
}

}  // namespace podsim

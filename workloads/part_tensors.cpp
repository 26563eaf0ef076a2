#include "workloads/part_tensors.hpp"

#include "sim/base/invariant.hpp"
#include "sim/schedule/submesh.hpp"

namespace podsim {

namespace {

constexpr std::array<std::string_view, 5> role_names{"weight", "weight gradient", "activation", "activation gradient", "statistic"};

/// The gradients that a residual adds up in the backward pass have the names of activations in its schedule.
bool adds_gradients(const WorkloadPart& part) { return part.kind == WorkloadPart::Kind::residual && part.pass == Pass::backward; }

std::string name_in(const WorkloadPart& part, const std::string& tensor) {
  if (!adds_gradients(part)) return tensor;
  return tensor == "X" ? "dY" : tensor == "Y" ? "dX" : "d" + tensor;
}

TensorRole role_of(const std::string& name) {
  if (name == "W") return TensorRole::weight;
  if (name == "dW") return TensorRole::weight_gradient;
  if (name == "sums") return TensorRole::statistic;
  return name.front() == 'd' ? TensorRole::activation_gradient : TensorRole::activation;
}

/// A gradient is stored as what it is the gradient of.
bool is_transposed(const WorkloadPart& part, const std::string& tensor) {
  const bool is_out = tensor == "Y" || tensor == "dY";
  ActivationLayout layout = part.layout;
  if (part.kind == WorkloadPart::Kind::product) {
    const ProductChoice& product = part.product;
    if (tensor == "W" || tensor == "dW") return weights_transposed(product.dataflow, product.transposed);
    layout = is_out ? output_layout(product.dataflow, product.transposed) : input_layout(product.dataflow, product.transposed);
  }
  if (part.kind == WorkloadPart::Kind::relayout && is_out) layout = other(layout);
  return layout == ActivationLayout::features_by_row;
}

std::int64_t whole_elements(const Buffer& buffer) {
  std::int64_t elements = 1;
  for (std::size_t d = 0; d < buffer.extents.size(); ++d) elements *= buffer.extents[d] * devices_along(buffer.sharding[d]);
  return elements;
}

/// The number of rows as stored. A weight's follow from what the schedule claims, all others from the tokens.
std::int64_t rows_of(const WorkloadPart& part, const Schedule& schedule, const PartTensor& tensor, std::int64_t elements) {
  if (const auto* products = std::get_if<Products>(&schedule.computes))
    for (const Product& product : *products) {
      if (product.left == tensor.tensor) return product.transpose_left ? product.k : product.m;
      if (product.right == tensor.tensor) return product.transpose_right ? product.n : product.k;
      if (product.out == tensor.tensor) return product.m;
    }
  return tensor.transposed ? elements / part.tokens : part.tokens;
}

/// Joins the buffer's dimensions to rows and columns. The axes that divide them are those of the first dimension of several.
void join(const Buffer& buffer, std::int64_t rows, PartTensor& tensor) {
  tensor.extents = {1, 1};
  std::size_t into = 0;
  for (std::size_t d = 0; d < buffer.extents.size(); ++d) {
    if (into == 0 && d > 0 && tensor.extents[0] == rows) into = 1;
    if (tensor.extents[into] == 1)
      tensor.sharding[into] = buffer.sharding[d];
    else
      PODSIM_ASSERT(buffer.sharding[d].empty() && "a device's rows and columns are adjacent");
    tensor.extents[into] *= buffer.extents[d] * devices_along(buffer.sharding[d]);
  }
  PODSIM_ASSERT(tensor.extents[0] == rows);
}

}  // namespace

std::string_view name_of(TensorRole role) { return role_names[static_cast<std::size_t>(role)]; }

std::vector<PartTensor> tensors_of(const WorkloadPart& part, const Schedule& schedule) {
  std::vector<PartTensor> tensors;
  for (const Buffer& buffer : schedule.programs.front().buffers) {
    if (buffer.role == Role::scratch) continue;
    PODSIM_ASSERT(buffer.unreduced.empty() && "parts add their sums up");
    PartTensor tensor;
    tensor.tensor = buffer.tensor;
    tensor.name = name_in(part, buffer.tensor);
    tensor.role = role_of(tensor.name);
    tensor.dtype = buffer.dtype;
    tensor.transposed = is_transposed(part, buffer.tensor);
    join(buffer, rows_of(part, schedule, tensor, whole_elements(buffer)), tensor);
    tensors.push_back(std::move(tensor));
  }
  return tensors;
}

}  // namespace podsim

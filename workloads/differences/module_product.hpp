// The product of matrices that a module computes.
#pragma once

#include <optional>
#include <string>

#include "algorithms/gemm/dataflow.hpp"
#include "workloads/differences/data_flow.hpp"

namespace podsim {

struct ModuleProduct {
  GemmProblem problem;                 // on whole arrays; its dataflow is not used
  std::string left{}, right{}, out{};  // the module's names of the operands and the result; of a given product none
  double flops = 0;                    // of the module's products, on all devices
};

/// Y[m,n] = X.W over k, where the module's products together read two parameters and make one result. With each array split evenly over all devices,
/// L multiplications on each device, and x, w and y elements of the arrays there: m = L / w, n = L / x, k = L / y. Left is the first parameter, or
/// the one that the extents of the module's own products ask for. Errors, at the module or at a product: none; products that depend on each other;
/// other numbers of parameters or results; arrays that are not split evenly, as a replicated operand, so that m n k is not the work of all devices.
/// All say what was found, and that `gemm` gives the product.
Expected<ModuleProduct> product_of_module(const HloModule& module, const FlatModule& flat, const DataFlow& flow, const HloCountOptions& options);

}  // namespace podsim

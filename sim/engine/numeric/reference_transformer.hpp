// The operations of transformers in float64, on whole arrays: what ReferenceKind has of them. Written from the definitions, apart from the kernels
// that execute schedules (transformer_kernels.hpp).
#pragma once

#include <vector>

#include "sim/base/thread_pool.hpp"
#include "sim/schedule/reference_program.hpp"

namespace podsim {

// x, dy and results are [tokens, features], sums [tokens, w].
std::vector<double> reference_norm_sums(const std::vector<double>& x, const Extents& of_x, std::int64_t w);
std::vector<double> reference_norm(const std::vector<double>& x, const std::vector<double>& sums, const Extents& of_x, std::int64_t w);
std::vector<double> reference_norm_grad(const std::vector<double>& dy, const std::vector<double>& x, const std::vector<double>& sums,
                                        const Extents& of_x, std::int64_t w);

// qkv and its gradient are [sequences, sequence, groups, q + 2, head].
std::vector<double> reference_attention(const std::vector<double>& qkv, const Extents& of_qkv, bool causal, ThreadPool& pool);
std::vector<double> reference_attention_grad(const std::vector<double>& d_o, const std::vector<double>& qkv, const Extents& of_qkv, bool causal,
                                             ThreadPool& pool);

}  // namespace podsim

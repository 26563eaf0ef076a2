// The operations of transformers between products (formulas in LocalKind), on boxes of values. Written for clarity: they prove schedules at small
// sizes; time is simulated elsewhere.
//
// Arithmetic is float64. A result is rounded to float32 at the store, then to bf16 if its buffer is bf16. All operands are read completely before
// anything is written, so results may overlap them. Each call allocates 8 bytes per element for that.
#pragma once

#include "sim/engine/numeric/kernels.hpp"

namespace podsim {

/// The same elements with tokens first: a box [features, tokens] as [tokens, features]; an attention box with sequences last as one with sequences
/// first.
View tokens_first(View view);

/// Transposes [tokens, features...] to [features..., tokens]; with `features_first` the reverse. Of any dtype.
void transpose(bool features_first, const View& in, const View& out);

// Norms over `features` features in total. x, dy and results are [tokens, a device's features], sums are [tokens, 1 or 2]. A mean square deviation
// that is negative because of rounding counts as 0.
void norm_sums(const View& x, const View& sums);
void norm(double features, const View& x, const View& sums, const View& xhat);
void norm_grad_sums(double features, const View& dy, const View& x, const View& sums, const View& gradient_sums);
void norm_grad(double features, const View& dy, const View& x, const View& sums, const View& gradient_sums, const View& dx);

// Elementwise, in row-major order, whatever the shapes.
void gelu(const View& x, const View& y);
void gelu_grad(const View& dy, const View& x, const View& dx);
void swiglu(const View& gate, const View& up, const View& y);
void swiglu_grad(const View& dy, const View& gate, const View& up, const View& dgate, const View& dup);

// qkv and its gradient are [sequences, sequence, groups, q + 2, head], o and its gradient [sequences, sequence, groups, q, head].
void attention(bool causal, const View& qkv, const View& o);
void attention_grad(bool causal, const View& d_o, const View& qkv, const View& dqkv);

// Tokens and experts as LocalKind has them.
void expert_gates(const View& logits, const View& gates);
void expert_gates_grad(const View& dgates, const View& gates, const View& dlogits);
void expert_combine(const View& y, const View& gates, const View& x);
void expert_combine_grad(const View& dx, const View& y, const View& gates, const View& dy, const View& dgates);

}  // namespace podsim

// What transformers do between products (LocalKind has the formulas), on boxes of values. Written to be read: they prove schedules on small
// sizes, and time is simulated elsewhere.
//
// Arithmetic is float64; a result is rounded to float32 when it is stored, and then to bf16 if its buffer is bf16. Every operand is read as a
// whole before anything is written, so results may lie anywhere in the operands. Room for that, 8 bytes per element, comes and goes with a call.
#pragma once

#include "sim/engine/numeric/kernels.hpp"

namespace podsim {

/// A box [features, tokens] as [tokens, features], or one of attention with sequences last as the one with sequences first: the same elements.
View tokens_first(View view);

/// [tokens, features...] to [features..., tokens], or with `features_first` back.
void transpose(bool features_first, const View& in, const View& out);

// Norms over `features` features in all; x, dy and results are [tokens, a device's features], sums are [tokens, 1 or 2]. A mean square
// deviation that rounding of the sums has made negative counts as 0.
void norm_sums(const View& x, const View& sums);
void norm(double features, const View& x, const View& sums, const View& xhat);
void norm_grad_sums(double features, const View& dy, const View& x, const View& sums, const View& gradient_sums);
void norm_grad(double features, const View& dy, const View& x, const View& sums, const View& gradient_sums, const View& dx);

// Element by element, corresponding in row-major order, whatever the shapes.
void gelu(const View& x, const View& y);
void gelu_grad(const View& dy, const View& x, const View& dx);
void swiglu(const View& gate, const View& up, const View& y);
void swiglu_grad(const View& dy, const View& gate, const View& up, const View& dgate, const View& dup);

// qkv and its gradient are [sequences, sequence, groups, q + 2, head], o and its gradient [sequences, sequence, groups, q, head].
void attention(bool causal, const View& qkv, const View& o);
void attention_grad(bool causal, const View& d_o, const View& qkv, const View& dqkv);

}  // namespace podsim

// Modules that contradict themselves are refused at the line that does, as XLA's HloVerifier refuses them; what differs from them in that line alone is read.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "workloads/hlo/testing.hpp"

namespace podsim {
namespace {

struct Contradiction {
  std::string right, wrong;  // the lines behind the entry's parameters, the first in line 22
  std::string error;
};

/// Of a module of 4 devices, whose entry has x f32[4,6], y f32[6,8], i s32[4,1], u f32[4,8], w c64[4], v f32[4] in memory space 1 and the constants zero f32[] and n s32[].
std::string refusal_of(const std::string& lines) {
  return test::error_of("HloModule m, num_partitions=4\n"
                        "%sum { p = f32[] parameter(0)\n q = f32[] parameter(1)\n ROOT s = f32[] add(p, q) }\n"
                        "%sums { p = f32[] parameter(0)\n q = f32[] parameter(1)\n a = f32[] parameter(2)\n b = f32[] parameter(3)\n ROOT t = (f32[], f32[]) tuple(p, q) }\n"
                        "%less { p = f32[] parameter(0)\n q = f32[] parameter(1)\n ROOT l = pred[] compare(p, q), direction=LT }\n"
                        "ENTRY e {\n x = f32[4,6] parameter(0)\n y = f32[6,8] parameter(1)\n i = s32[4,1] parameter(2)\n u = f32[4,8] parameter(3)\n w = c64[4] parameter(4)\n"
                        " v = f32[4]{0:S(1)} parameter(5)\n zero = f32[] constant(0)\n n = s32[] constant(0)\n " +
                        lines + "\n}\n");
}

void refuses(const std::vector<Contradiction>& cases) {
  for (const Contradiction& one : cases) {
    EXPECT_EQ(refusal_of(one.right), "") << one.right;
    EXPECT_EQ(refusal_of(one.wrong), one.error) << one.wrong;
  }
}

TEST(Contradictions, OperandsThatAreMissingOrTooMany) {
  const std::string gathers = ", offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, slice_sizes={1,8}",
                    scatters = ", update_window_dims={1}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=%sum";
  refuses({
      {"ROOT r = f32[4,8] gather(y, i)" + gathers, "ROOT r = f32[4,8] gather(y)" + gathers, "m:22:2: expected 2 operands of gather, got 1"},
      {"ROOT r = f32[6,8] scatter(y, i, u)" + scatters, "ROOT r = f32[6,8] scatter(y, i)" + scatters, "m:22:2: expected arrays, indices and an update for each array, got 2 operands"},
      {"ROOT r = f32[4] reduce(x, zero), dimensions={1}, to_apply=%sum", "ROOT r = f32[4] reduce(x), dimensions={1}, to_apply=%sum", "m:22:2: expected arrays and an initial value for each, got 1 operand"},
      {"ROOT r = f32[4,6] dynamic-update-slice(x, x, n, n)", "ROOT r = f32[4,6] dynamic-update-slice(x)", "m:22:2: expected an array, its update and where that starts, got 1 operand"},
      {"ROOT r = f32[4,6] dynamic-update-slice(x, x, n, n)", "ROOT r = f32[4,6] dynamic-update-slice(x, n, n)", "m:22:2: expected where the slice starts in each of the 2 dimensions of f32[4,6], got 1 operands for it"},
      {"ROOT r = f32[4,6] copy(x)", "ROOT r = f32[4,6] copy(x, y)", "m:22:2: expected 1 operand of copy, got 2"},
      {"s = (f32[4,6], f32[4,6], u32[]) copy-start(x)\n ROOT r = f32[4,6] copy-done(s)", "s = (f32[4,6], f32[4,6], u32[]) copy-start(x, y)\n ROOT r = f32[4,6] copy-done(s)",
       "m:22:2: expected 1 operand of copy-start, got 2"},
      {"s = (f32[4,6], f32[4,6], u32[]) copy-start(x)\n ROOT r = f32[4,6] copy-done(s)", "s = (f32[4,6], f32[4,6], u32[]) copy-start(x)\n ROOT r = f32[4,6] copy-done(s, x)",
       "m:23:2: expected the operation that copy-done ends, and no more operands, got 2"},
      {"ROOT r = f32[4,6] reverse(x), dimensions={0}", "ROOT r = f32[4,6] reverse(x, y), dimensions={0}", "m:22:2: expected 1 operand of reverse, got 2"},
      {"ROOT r = c64[4] fft(w), fft_type=FFT, fft_length={4}", "ROOT r = c64[4] fft(w, w), fft_type=FFT, fft_length={4}", "m:22:2: expected 1 operand of fft, got 2"},
      {"ROOT r = f32[4,6] select-and-scatter(x, x, zero), window={size=1x1}, select=%less, scatter=%sum", "ROOT r = f32[4,6] select-and-scatter(x, x), window={size=1x1}, select=%less, scatter=%sum",
       "m:22:2: expected 3 operands of select-and-scatter, got 2"},
      {"k = token[] after-all()\n s = (f32[4,6], u32[], token[]) send(x, k), channel_id=1\n ROOT d = token[] send-done(s), channel_id=1",
       "k = token[] after-all()\n s = (f32[4,6], u32[], token[]) send(x), channel_id=1\n ROOT d = token[] send-done(s), channel_id=1", "m:23:2: expected what it moves and a token as operands of send, got 1"},
      {"ROOT r = u32[] partition-id()", "ROOT r = u32[] partition-id(x)", "m:22:2: expected 0 operands of partition-id, got 1"},
  });
}

TEST(Contradictions, ShapesThatDoNotFollowFromOperands) {
  const std::string windows = ", window={size=2x2}, to_apply=%sums", gathers = ", offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, slice_sizes=";
  refuses({
      {"t = (f32[4,6]) tuple(x)\n ROOT r = f32[8,6] concatenate(x, x), dimensions={0}", "t = (f32[4,6]) tuple(x)\n ROOT r = f32[8,6] concatenate(t, x), dimensions={0}",
       "m:23:2: expected an array as operand 0, of numbers like those of operand 0, (f32[4,6]), got (f32[4,6])"},
      {"ROOT r = (f32[3,5], f32[3,5]) reduce-window(x, x, zero, zero)" + windows, "ROOT r = (f32[3,5], f32[3,6]) reduce-window(x, x, zero, zero)" + windows, "m:22:2: expected results of [3,5], got f32[3,6]"},
      {"ROOT r = (f32[3,5], f32[3,5]) reduce-window(x, x, zero, zero)" + windows, "ROOT r = (f32[3,5]) reduce-window(x, x, zero, zero)" + windows, "m:22:2: expected a result of each of 2 arrays, got (f32[3,5])"},
      {"ROOT r = (f32[3,5], f32[3,5]) reduce-window(x, x, zero, zero)" + windows, "ROOT r = (f32[4], f32[4]) reduce-window(x, x, zero, zero), window={size=2}, to_apply=%sums",
       "m:22:2: expected a window of the 2 dimensions of f32[4,6], got 1"},
      {"ROOT r = (f32[4], f32[4]) reduce(x, x, zero, zero), dimensions={1}, to_apply=%sums", "ROOT r = f32[4] reduce(x, x, zero, zero), dimensions={1}, to_apply=%sums",
       "m:22:2: expected a tuple of 2 results, got f32[4]"},
      {"ROOT r = (f32[4], f32[4]) reduce(x, x, zero, zero), dimensions={1}, to_apply=%sums", "ROOT r = (f32[4], f32[4]) reduce(x, u, zero, zero), dimensions={1}, to_apply=%sums",
       "m:22:2: expected arrays of one shape, got f32[4,6] and f32[4,8]"},
      {"ROOT r = f32[4] reduce(x, zero), dimensions={1}, to_apply=%sum", "ROOT r = f32[4] reduce(x, n), dimensions={1}, to_apply=%sum", "m:22:2: expected a number as operand 1, where f32[4,6] starts from, got s32[]"},
      {"ROOT r = f32[4] reduce(x, zero), dimensions={1}, to_apply=%sum", "ROOT r = f32[4,6] reduce(x, zero), dimensions={2}, to_apply=%sum", "m:22:2: expected dimensions of f32[4,6] in dimensions, got 2"},
      {"ROOT r = f32[4,6] select-and-scatter(x, x, zero), window={size=1x1}, select=%less, scatter=%sum", "ROOT r = f32[4,6] select-and-scatter(x, x, zero), window={size=2x1}, select=%less, scatter=%sum",
       "m:22:2: expected a number for each of [3,6] places, got f32[4,6]"},
      {"ROOT r = f32[4,8] gather(y, i)" + gathers + "{1,8}", "ROOT r = f32[4,9] gather(y, i)" + gathers + "{1,9}", "m:22:2: expected slice_sizes from 0 to 8 along dimension 1 of f32[6,8], got 9"},
      {"ROOT r = f32[4,8] gather(y, i)" + gathers + "{1,8}", "ROOT r = f32[4,1,8] gather(y, i), offset_dims={2}, collapsed_slice_dims={0}, start_index_map={0,1}, index_vector_dim=2, slice_sizes={1,8}",
       "m:22:2: expected an index for each of the 2 dimensions in start_index_map, got 1 in s32[4,1]"},
      {"ROOT r = u16[4,6,2] bitcast-convert(x)", "ROOT r = u16[4,12] bitcast-convert(x)", "m:22:2: expected the bits of its operand, f32[4,6], got u16[4,12]"},
      {"h = f16[4,6,2] bitcast-convert(x)\n ROOT r = f32[4,6] bitcast-convert(h)", "h = f16[4,6,2] bitcast-convert(x)\n ROOT r = f32[4,12] bitcast-convert(h)",
       "m:23:2: expected the bits of its operand, f16[4,6,2], got f32[4,12]"},
      {"ROOT r = u32[4,6] bitcast-convert(x)", "ROOT r = c64[4,3] bitcast-convert(x)", "m:22:2: expected the bits of its operand, f32[4,6], got c64[4,3]"},
      {"k = token[] after-all()\n ROOT r = f32[4,6] add-dependency(x, k)", "k = token[] after-all()\n ROOT r = f32[6,4] add-dependency(x, k)", "m:23:2: expected the shape of operand 0, f32[4,6], got f32[6,4]"},
      {"ROOT r = f32[4] real(w)", "ROOT r = s32[4] real(w)", "m:22:2: expected a result of real numbers, got s32[4]"},
      {"ROOT r = f32[4,8] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}", "ROOT r = s32[4,8] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}",
       "m:22:2: expected a result of the kind of its operands, f32[4,6] and f32[6,8], got s32[4,8]"},
      {"s = (f32[4,6], f32[4,6], u32[]) copy-start(x)\n ROOT r = f32[4,6] copy-done(s)", "s = (f32[4,6], f32[4,6], f32[]) copy-start(x)\n ROOT r = f32[4,6] copy-done(s)",
       "m:22:2: expected u32[] behind the operand and the result, got f32[]"},
      {"k = token[] after-all()\n ROOT r = f32[4,6] add-dependency(x, k)", "k = token[] after-all()\n ROOT r = f32[4,6] add-dependency(x, y)", "m:23:2: expected a token as operand 1, got f32[6,8]"},
      {"ROOT r = f32[4,6] sort(x), dimensions={1}, to_apply=%less", "ROOT r = (f32[4,6], f32[4,8]) sort(x, u), dimensions={1}, to_apply=%less", "m:22:2: expected arrays of one shape, got f32[4,6] and f32[4,8]"},
  });
}

TEST(Contradictions, CollectivesOfOtherShapes) {
  const std::string all = ", channel_id=1, replica_groups={{0,1,2,3}}", reduces = all + ", use_global_device_ids=true, to_apply=%sum",
                    started = "s = (f32[4,6], f32[16,6]) all-gather-start(x)" + all + ", use_global_device_ids=true, dimensions={0}\n ",
                    summed = "s = f32[4,6] all-reduce-start(x)" + reduces + "\n ", tuples = "s = ((f32[4,6]), f32[4,6]) all-reduce-start(x)" + reduces + "\n ";
  refuses({
      {"ROOT r = f32[4,6] collective-broadcast(x)" + all, "ROOT r = f32[4,8] collective-broadcast(x)" + all, "m:22:2: expected a result like its operand, f32[4,6], got f32[4,8]"},
      {"ROOT r = (f32[4,6], f32[6,8]) all-reduce(x, y)" + reduces, "ROOT r = f32[4,6] all-reduce(x, y)" + reduces, "m:22:2: expected a tuple of 2 results, got f32[4,6]"},
      {"ROOT r = (f32[4,6], f32[6,8]) all-reduce(x, y)" + reduces, "ROOT r = (f32[4,6]) all-reduce(x, y)" + reduces, "m:22:2: expected a result of each of 2 operands, got (f32[4,6])"},
      {"ROOT r = (f32[4,6], f32[4,6], f32[4,6], f32[4,6]) all-to-all(x, x, x, x)" + all, "ROOT r = (f32[4,6], f32[4,6]) all-to-all(x, x)" + all, "m:22:2: expected an operand for each member of a group, got 2"},
      {"ROOT r = f32[4,6] all-to-all(x)" + all + ", dimensions={0}", "ROOT r = f32[4,6] all-to-all(x)" + all + ", dimensions={1}", "m:22:2: expected a block for each of 4 members of a group along dimension 1, got f32[4,6]"},
      {"ROOT r = (f32[4,6], f32[4,8]) collective-permute(x, u), source_target_pairs={{0,1}}", "ROOT r = (f32[4,6], f32[4,9]) collective-permute(x, u), source_target_pairs={{0,1}}",
       "m:22:2: expected a result like its operand, f32[4,8], got f32[4,9]"},
      {started + "ROOT r = f32[16,6] all-gather-done(s)", started + "ROOT r = f32[4,6] all-gather-done(s)", "m:23:2: expected what was started, f32[16,6], got f32[4,6]"},
      {summed + "ROOT r = f32[4,6] all-reduce-done(s)", summed + "ROOT r = f32[4,7] all-reduce-done(s)", "m:23:2: expected what was started, f32[4,6], got f32[4,7]"},
      {tuples + "ROOT r = f32[4,6] all-reduce-done(s)", tuples + "ROOT r = ((f32[4,6]), f32[4,6]) all-reduce-done(s)", "m:23:2: expected what was started, f32[4,6], got ((f32[4,6]), f32[4,6])"},
  });
}

TEST(Contradictions, CustomCallsOfOtherShapes) {
  const auto product = [](const std::string& target, const std::string& result, const std::string& operands, const std::string& beta = "0") {
    return "ROOT r = " + result + " custom-call(" + operands + "), custom_call_target=\"" + target + R"(", backend_config={"gemm_backend_config":{"alpha_real":1,"beta":)" + beta +
           R"(,"dot_dimension_numbers":{"lhs_contracting_dimensions":["1"],"rhs_contracting_dimensions":["0"]}}})";
  };
  const auto call = [](const std::string& target, const std::string& result, const std::string& operands) { return "ROOT r = " + result + " custom-call(" + operands + "), custom_call_target=\"" + target + "\""; };
  const std::string gemm = "__cublas$gemm", lt = "__cublas$lt$matmul", convolves = ", custom_call_target=\"__cudnn$convForward\", window={size=1}, dim_labels=b0f_0io->b0f";
  refuses({
      {product(gemm, "(f32[4,8], s8[64])", "x, y"), product(gemm, "(f32[8,4], s8[64])", "x, y"), "m:22:2: expected a result of [4,8], got f32[8,4]"},
      {product(lt, "f32[4,8]", "x, y"), product(lt, "f32[4,8]", "y, x"), "m:22:2: expected operands that agree on what is contracted and on batches, got f32[6,8] and f32[4,6]"},
      {product(gemm, "f32[4,8]", "x, y"), product(gemm, "f32[4,8]", "x"), "m:22:2: expected two arrays as the first operands of __cublas$gemm, got 1 operand"},
      {product(lt, "f32[4,8]", "x, y"), product(lt, "f32[4,8]", "x, y, u"), "m:22:2: expected 2 operands of __cublas$lt$matmul, got 3"},
      {product(lt, "f32[4,8]", "x, y, u", "1"), product(lt, "f32[4,8]", "x, y, y", "1"), "m:22:2: expected what the product is added to, f32[4,8], as operand 2 where beta is not 0, got f32[6,8]"},
      {"a = f32[2,2,6] reshape(x)\n k = f32[1,6,8] reshape(y)\n ROOT r = (f32[2,2,8], u8[0]) custom-call(a, k)" + convolves,
       "a = f32[2,2,6] reshape(x)\n k = f32[1,6,8] reshape(y)\n ROOT r = (f32[2,3,8], u8[0]) custom-call(a, k)" + convolves, "m:24:2: expected a result of [2,2,8], got f32[2,3,8]"},
      {call("TopK", "(f32[4,2], s32[4,2])", "x"), call("TopK", "(f32[4,7], s32[4,7])", "x"), "m:22:2: expected the largest of each row of f32[4,6], and as many indices as the result of TopK, got (f32[4,7], s32[4,7])"},
      {call("TopK", "(f32[4,2], s32[4,2])", "x"), call("TopK", "(f32[4,2], s32[4,3])", "x"), "m:22:2: expected the largest of each row of f32[4,6], and as many indices as the result of TopK, got (f32[4,2], s32[4,3])"},
      {call("X64SplitLow", "f32[4]", "w"), call("X64SplitLow", "f32[2,4]", "w"), "m:22:2: expected half of each number of c64[4] as the result of X64SplitLow, got f32[2,4]"},
      {call("X64SplitHigh", "f32[4]", "w"), call("X64SplitHigh", "f64[4]", "w"), "m:22:2: expected half of each number of c64[4] as the result of X64SplitHigh, got f64[4]"},
      {call("X64Combine", "c64[4,6]", "x, x"), call("X64Combine", "c64[4]", "x, x"), "m:22:2: expected numbers of the halves f32[4,6] and f32[4,6] as the result of X64Combine, got c64[4]"},
      {call("X64Combine", "c64[4,6]", "x, x"), call("X64Combine", "c64[4,6]", "x"), "m:22:2: expected 2 operands of X64Combine, got 1"},
      {call("ConcatBitcast", "f32[8,6]", "x, x"), call("ConcatBitcast", "f32[8,7]", "x, x"), "m:22:2: expected as many bytes as its operands have, 192, got f32[8,7]"},
      {call("MoveToHost", "f32[4,6]", "x"), call("MoveToHost", "f32[6,4]", "x"), "m:22:2: expected the shape of operand 0, f32[4,6], got f32[6,4]"},
      {call("a kernel", "f32[4,6]", "x"), call("a kernel", "f32[4]", "x"), ""},
  });
}

TEST(Contradictions, LayoutsAndMemorySpaces) {
  refuses({
      {"ROOT r = f32[4,6]{1,0:T(8,128)S(1)} copy(x)", "ROOT r = f32[4,6]{1,0:T(8,128)X(8)} copy(x)", "m:22:32: expected a part of a layout such as T(8,128) or S(1), or \"}\", got \"X(8)} copy(x)\""},
      {"ROOT r = f32[4,6]{1,0:T(8,128)S(1)} copy(x)", "ROOT r = f32[4,6]{1,0:T(8,128)S(1)S(3)} copy(x)", "m:22:36: expected S of a layout once, got \"S(3)} copy(x)\""},
      {"ROOT r = f32[4]{0} copy(v)", "ROOT r = f32[4]{0} bitcast(v)", "m:22:2: r: expected a value that stays in memory space S(1), got f32[4] in S(0)"},
      {"t = (f32[4]{0:S(1)}) tuple(v)\n ROOT r = f32[4]{0:S(1)} get-tuple-element(t), index=0", "t = (f32[4]{0:S(1)}) tuple(v)\n ROOT r = f32[4]{0} get-tuple-element(t), index=0",
       "m:23:2: r: expected a value that stays in memory space S(1), got f32[4] in S(0)"},
      {"ROOT t = (f32[4]{0:S(1)}) tuple(v)", "ROOT t = (f32[4]{0:S(5)}) tuple(v)", "m:22:2: t: expected a value that stays in memory space S(1), got f32[4] in S(5)"},
      {"ROOT b = f32[4]{0:S(1)} opt-barrier(v)", "ROOT b = f32[4]{0} opt-barrier(v)", "m:22:2: b: expected a value that stays in memory space S(1), got f32[4] in S(0)"},
      {"s = (f32[4], f32[4]{0:S(1)}, u32[]) copy-start(v)\n ROOT r = f32[4] copy-done(s)", "s = (f32[4], f32[4]{0:S(1)}, u32[]) copy-start(v)\n ROOT r = f32[4]{0:S(1)} copy-done(s)",
       "m:23:2: r: expected a value that stays in memory space S(0), got f32[4] in S(1)"},
      {"c = f32[4] copy(v)\n ROOT r = f32[4] call(c), to_apply={ ROOT p = f32[4] parameter(0) }", "c = f32[4] copy(v)\n ROOT r = f32[4]{0:S(1)} call(c), to_apply={ ROOT p = f32[4] parameter(0) }",
       "m:23:2: r: expected a value that stays in memory space S(0), got f32[4] in S(1)"},
      {"ROOT r = f32[4] fusion(v), kind=kLoop, calls={ p = f32[4]{0:S(1)} parameter(0)\n ROOT b = f32[4] bitcast(p) }", "ROOT r = f32[4] call(v), to_apply={ p = f32[4]{0:S(1)} parameter(0)\n ROOT b = f32[4] bitcast(p) }",
       "m:23:2: b: expected a value that stays in memory space S(1), got f32[4] in S(0)"},
  });
}

TEST(Contradictions, ComputationsHoldWhatTheirCallersRun) {
  const auto fused = [](const std::string& caller, const std::string& line) { return "ROOT r = f32[4,6] " + caller + "={ p = f32[4,6] parameter(0)\n " + line + " }"; };
  const std::string loop = "ROOT o = f32[4,6] while(p), condition={ a = f32[4,6] parameter(0)\n ROOT l = pred[] constant(false) }, body={ ROOT a = f32[4,6] parameter(0) }",
                    groups = ", replica_groups={{0,1,2,3}}, use_global_device_ids=true, channel_id=1, to_apply=%sum", gathers = "(f32[4,6], f32[16,6]) all-gather-start(p), replica_groups={{0,1,2,3}}, use_global_device_ids=true, channel_id=1, dimensions={0}";
  refuses({
      {fused("call(x), to_apply", loop), fused("fusion(x), kind=kLoop, calls", loop), "m:23:2: o: expected what can be fused in computation r.computation, found while"},
      {fused("fusion(x), kind=kLoop, calls", "ROOT o = f32[4,6] all-reduce(p)" + groups), fused("fusion(x), kind=kLoop, calls", "s = " + gathers + "\n g = f32[16,6] all-gather-done(s)\n ROOT o = f32[4,6] slice(g), slice={[0:4], [0:6]}"),
       "m:23:2: s: expected what can be fused in computation r.computation, found all-gather-start"},
      {"ROOT r = f32[4] reduce(x, zero), dimensions={1}, to_apply={ p = f32[] parameter(0)\n q = f32[] parameter(1)\n ROOT o = f32[] add(p, q) }",
       "ROOT r = f32[4] reduce(x, zero), dimensions={1}, to_apply={ p = f32[] parameter(0)\n q = f32[] parameter(1)\n ROOT o = f32[] all-reduce(p)" + groups + " }",
       "m:24:2: o: expected operations on numbers in computation r.computation, found all-reduce"},
  });
}

}  // namespace
}  // namespace podsim

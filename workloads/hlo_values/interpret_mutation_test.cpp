// Mutated modules: interpret() gives a value or an error, never a crash, and ends.
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "sim/base/rng.hpp"
#include "sim/base/test_asked.hpp"
#include "sim/base/test_cases.hpp"
#include "workloads/hlo_values/test_run.hpp"

namespace podsim {
namespace {

constexpr std::string_view loop_module = R"(HloModule m, is_scheduled=true, num_partitions=4
add { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT s = f32[] add(a, b) }
fused { q = f32[4,6] parameter(0)
  w = f32[6,2] parameter(1)
  c = f32[4,2] convolution(q, w), window={}, dim_labels=bf_io->bf
  z = f32[] constant(0.5)
  bz = f32[4,2] broadcast(z), dimensions={}
  ROOT m = f32[4,2] maximum(c, bz) }
body { t = (s32[], f32[4,6], f32[4,6]) parameter(0)
  i = s32[] get-tuple-element(t), index=0
  x = f32[4,6] get-tuple-element(t), index=1
  y = f32[4,6] get-tuple-element(t), index=2
  ps = (f32[4,6], f32[4,6], u32[]) collective-permute-start(x), channel_id=1, source_target_pairs={{0,1},{1,2},{2,3},{3,0}}
  id = u32[] partition-id()
  me = s32[] convert(id)
  k = s32[] add(me, i)
  row = f32[1,6] dynamic-slice(x, k, i), dynamic_slice_sizes={1,6}
  neg = f32[1,6] negate(row)
  y2 = f32[4,6] dynamic-update-slice(y, neg, i, k)
  pd = f32[4,6] collective-permute-done(ps)
  one = s32[] constant(1)
  n = s32[] add(i, one)
  ROOT r = (s32[], f32[4,6], f32[4,6]) tuple(n, pd, y2) }
cond { t = (s32[], f32[4,6], f32[4,6]) parameter(0)
  j = s32[] get-tuple-element(t), index=0
  four = s32[] constant(4)
  ROOT lt = pred[] compare(j, four), direction=LT }
ENTRY main { x = f32[4,6] parameter(0)
  w = f32[6,2] parameter(1)
  zero = s32[] constant(0)
  tuple = (s32[], f32[4,6], f32[4,6]) tuple(zero, x, x)
  while = (s32[], f32[4,6], f32[4,6]) while(tuple), condition=cond, body=body
  y = f32[4,6] get-tuple-element(while), index=2
  ar = f32[4,6] all-reduce(y), replica_groups=[2,2]<=[4], to_apply=add
  ROOT out = f32[4,2] fusion(ar, w), kind=kOutput, calls=fused }
)";

constexpr std::string_view array_module = R"(HloModule m, num_partitions=4
add { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT s = f32[] add(a, b) }
less { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT s = pred[] compare(a, b), direction=LT }
ENTRY main { x = f32[4,6]{0,1} parameter(0)
  w = f32[6,2] parameter(1)
  zf = f32[] constant(2)
  zi = s32[2,1] constant({{1}, {3}})
  t = f32[6,4] transpose(x), dimensions={1,0}
  bc = f32[6,4]{1,0} bitcast(x)
  p = f32[9,3] pad(t, zf), padding=1_2_0x-1_0_0
  s = f32[2,3] slice(p), slice={[1:9:4], [0:3]}
  rv = f32[2,3] reverse(s), dimensions={1}
  cc = f32[2,6] concatenate(s, rv), dimensions={1}
  g = f32[2,6] gather(x, zi), offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, slice_sizes={1,6}
  sc = f32[4,6] scatter(x, zi, g), update_window_dims={1}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=add
  rw = f32[4,6] reduce-window(sc, zf), window={size=1x3 stride=1x1 pad=0_0x2_0 rhs_dilate=1x1}, to_apply=add
  rd = f32[6] reduce(rw, zf), dimensions={0}, to_apply=add
  so = f32[6] sort(rd), dimensions={0}, to_apply=less
  br = f32[2,6] broadcast(so), dimensions={1}
  ad = f32[2,6] add(br, cc)
  d = f32[2,2] dot(ad, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  lhs = f32[1,4,6] reshape(x)
  rhs = f32[3,6,2] broadcast(w), dimensions={1,2}
  cv = f32[1,4,2] convolution(lhs, rhs), window={size=3 stride=1 pad=1_1 lhs_dilate=1 rhs_dilate=1 rhs_reversal=1}, dim_labels=b0f_0io->b0f
  ag = f32[2,8] all-gather(d), channel_id=1, replica_groups={{0,1,2,3}}, dimensions={1}, use_global_device_ids=true
  rs = f32[2,2] reduce-scatter(ag), channel_id=2, replica_groups=mesh['a'=2,'b'=2] {'a','b'}, dimensions={1}, use_global_device_ids=true, to_apply=add
  aa = f32[2,2] all-to-all(rs), channel_id=3, replica_groups=[2,2]<=[2,2]T(1,0), dimensions={0}
  it = s32[2,2] iota(), iota_dimension=1
  cf = s32[2,2] convert(aa)
  sh = s32[2,2] shift-left(cf, it)
  dv = s32[2,2] divide(sh, it)
  by = s8[96] bitcast(x)
  cb = f32[4,6]{0,1} custom-call(by), custom_call_target="ConcatBitcast"
  ab = f32[4,6] custom-call(), custom_call_target="AllocateBuffer"
  gs = s32[4] constant({1, 0, 2, 1})
  ra = f32[4,6] ragged-all-to-all(x, ab, gs, gs, gs, gs), channel_id=4, replica_groups={{0,1,2,3}}
  gm = f32[4,6,2] broadcast(w), dimensions={1,2}
  rg = f32[4,2] ragged-dot(cb, gm, gs), lhs_contracting_dims={1}, rhs_contracting_dims={1}, lhs_ragged_dims={0}, rhs_group_dims={0}
  ROOT out = (f32[2,2], s32[2,2], f32[1,4,2], f32[6,4], f32[4,2]) tuple(aa, dv, cv, bc, rg) }
)";

constexpr std::string_view library_module = R"(HloModule m, num_partitions=4
ge { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT s = pred[] compare(a, b), direction=GE }
sum { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT s = f32[] add(a, b) }
ENTRY main (x: f32[4,6], c: c64[4,6], h: bf16[16,128]) -> (f32[4,6], f32[4,2], s32[4,2], f32[1,4,4,1], f32[2,2,1,3], bf16[1,2,8,128], f32[4,4], f32[4,6]) { x = f32[4,6] parameter(0)
  c = c64[4,6] parameter(1)
  h = bf16[16,128]{1,0:T(8,128)(2,1)} parameter(2)
  rf = c64[4,4] fft(x), fft_type=RFFT, fft_length={4,6}
  ir = f32[4,6] fft(rf), fft_type=IRFFT, fft_length={4,6}
  ff = c64[4,6] fft(c), fft_type=IFFT, fft_length={6}
  lo = f32[4,6] custom-call(ff), custom_call_target="X64SplitLow"
  hi = f32[4,6] custom-call(ff), custom_call_target="X64SplitHigh"
  cm = c64[4,6] custom-call(lo, hi), custom_call_target="X64Combine"
  ex = c64[4,6] exponential(cm)
  ml = c64[4,6] multiply(ex, c)
  cp = c64[4,6] complex(x, ir)
  dv = c64[4,6] divide(ml, cp)
  ct = c64[6,4] transpose(dv), dimensions={1,0}
  cd = c64[4,4] dot(dv, ct), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  ab = f32[4,4] abs(cd)
  mx = bf16[4,6] add(x, ir)
  wd = f32[4,6] sqrt(mx)
  tk = (f32[4,2], s32[4,2]) custom-call(wd), custom_call_target="TopK"
  tv = f32[4,2] get-tuple-element(tk), index=0
  ti = s32[4,2] get-tuple-element(tk), index=1
  sx = f32[4,4] slice(x), slice={[0:4], [0:4]}
  im = f32[1,4,4,1] reshape(sx)
  sw = f32[3,4] slice(ir), slice={[0:3], [2:6]}
  wt = f32[3,2,2,1] reshape(sw)
  bi = f32[3] constant({1, 2, 3})
  fw = (f32[1,2,2,3], u8[0]) custom-call(im, wt, bi), window={size=2x2 stride=2x2 pad=0_1x0_1}, dim_labels=b01f_o01i->b01f, custom_call_target="__cudnn$convBiasActivationForward", backend_config={"cudnn_conv_backend_config":{"activation_mode":"kRelu","conv_result_scale":2,"side_input_scale":0}}
  cy = f32[1,2,2,3] get-tuple-element(fw), index=0
  gi = (f32[1,4,4,1], u8[0]) custom-call(cy, wt), window={size=2x2 stride=2x2 pad=0_1x0_1}, dim_labels=b01f_o01i->b01f, custom_call_target="__cudnn$convBackwardInput"
  gx = f32[1,4,4,1] get-tuple-element(gi), index=0
  gf = (f32[2,2,1,3], u8[0]) custom-call(im, cy), window={size=2x2 stride=2x2 pad=0_1x0_1}, dim_labels=b01f_01io->b01f, custom_call_target="__cudnn$convBackwardFilter"
  gw = f32[2,2,1,3] get-tuple-element(gf), index=0
  bt = bf16[1,2,8,128]{3,2,1,0:T(8,128)(2,1)} bitcast(h)
  gm = (f32[4,4], s8[16]) custom-call(sx, ab), custom_call_target="__cublas$lt$matmul", backend_config={"gemm_backend_config":{"alpha_real":1,"alpha_imag":0,"beta":0,"epilogue":"DEFAULT","dot_dimension_numbers":{"lhs_contracting_dimensions":["1"],"rhs_contracting_dimensions":["0"]}}}
  gy = f32[4,4] get-tuple-element(gm), index=0
  kn = f32[4,4] custom-call(gy, ti), custom_call_target="tpu_custom_call"
  nl = f32[] constant(0)
  wi = f32[2,3] slice(ir), slice={[0:2], [0:3]}
  ss = f32[4,6] select-and-scatter(x, wi, nl), window={size=2x3 stride=2x3 pad=0_0x1_2}, select=ge, scatter=sum
  ROOT out = (f32[4,6], f32[4,2], s32[4,2], f32[1,4,4,1], f32[2,2,1,3], bf16[1,2,8,128], f32[4,4], f32[4,6]) tuple(wd, tv, ti, gx, gw, bt, kn, ss) }
)";

std::string mutated(std::string text, Rng& random) {
  static const std::vector<std::string> words{"f32",
                                              "s32",
                                              "u8",
                                              "pred",
                                              "bf16",
                                              "add",
                                              "multiply",
                                              "subtract",
                                              "maximum",
                                              "reshape",
                                              "bitcast",
                                              "copy",
                                              "0",
                                              "1",
                                              "2",
                                              "3",
                                              "-1",
                                              "7",
                                              "64",
                                              "4611686018427387904",
                                              "9007199254740992",
                                              "{1,0}",
                                              "{0,1}",
                                              "{0}",
                                              "{1}",
                                              "{}"};
  for (int i = random.between(1, 2); i > 0; --i) {
    const std::size_t at = random.below(text.size());
    switch (random.below(4)) {
      case 0: {  // another number
        const std::size_t digit = text.find_first_of("0123456789", at);
        if (digit != std::string::npos) text.replace(digit, 1, std::to_string(random.next() >> random.below(64)));
        break;
      }
      case 1: {  // a small one
        const std::size_t digit = text.find_first_of("0123456789", at);
        if (digit != std::string::npos) text.replace(digit, 1, std::to_string(random.below(8)));
        break;
      }
      case 2: {  // a word for another
        const std::size_t begin = text.find_first_of("({=, ", at),
                          end = begin == std::string::npos ? begin : text.find_first_of("({=, )}[", begin + 1);
        if (end != std::string::npos) text.replace(begin + 1, end - begin - 1, words[random.below(words.size())]);
        break;
      }
      default: {  // an operand or attribute less
        const std::size_t begin = text.find(',', at), end = begin == std::string::npos ? begin : text.find_first_of(",)\n", begin + 1);
        if (end != std::string::npos) text.erase(begin, end - begin);
        break;
      }
    }
  }
  return text;
}

/// What the mutants are made of runs itself.
TEST(HloInterpret, WhatMutantsAreMadeOfIsRead) {
  for (const std::string_view text : {loop_module, array_module, library_module}) EXPECT_EQ(test::error_of(text), "");
}

/// PODSIM_HLO_MUTANTS of them; the suite has 20,000, sanitized 5,000.
TEST(HloInterpret, MutantsGiveValuesOrErrors) {
  const int mutants = test::asked("PODSIM_HLO_MUTANTS", test::cases(20000, 5000));
  Rng random{19};
  int read = 0, ran = 0, refused = 0;
  for (int i = 0; i < mutants; ++i) {
    const std::string text = mutated(std::string{i % 3 == 0 ? loop_module : i % 3 == 1 ? array_module : library_module}, random);
    const auto module = parse_hlo(text, "m", {.tolerant = i % 5 == 0});
    if (!module) continue;
    ++read;
    HloRunOptions options;
    options.most_steps = 400000;
    options.most_elements = 40000;
    if (i % 7 == 0) options.arithmetic.perturb_seed = 1;
    // Arrays as the parameters of the mutant say, as far as they are small.
    std::vector<std::vector<HloArrays>> parameters;
    if (module->entry != HloInstruction::missing && module->num_partitions.value_or(1) == 4 && module->replica_count == 1)
      for (int device = 0; device < 4; ++device) {
        auto& mine = parameters.emplace_back();
        for (const int parameter : module->entry_computation().parameters) {
          const HloShape shape = parameter < 0 ? HloShape{} : *module->entry_computation().instructions[static_cast<std::size_t>(parameter)].shape;
          HloArrays& arrays = mine.emplace_back();
          for (const HloShape* leaf : leaves_of(shape))
            if (elements_of(*leaf) < 3000) arrays.push_back(zeros(leaf->type, leaf->dims));
          for (HloArray& array : arrays)
            for (double& value : array.reals) value = random.between(-300, 300) / 8.0;
        }
      }
    const auto results = interpret(*module, parameters, options);
    ASSERT_TRUE(results || !to_text(results.error()).empty());
    (results ? ran : refused) += 1;
  }
  // Mutants that are all refused at once, or all run, would test nothing.
  EXPECT_GT(read, mutants / 8);
  EXPECT_GT(ran, mutants / 20);
  EXPECT_GT(refused, mutants / 20);
}

}  // namespace
}  // namespace podsim

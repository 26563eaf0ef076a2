"""The rows of modules/: which program is compiled for which slice and mesh. A row: name, what it shows, program (file:function of programs/),
slice, axes of the mesh in order, options of the compiler, arguments of the function."""

ROWS = []


def row(name, why, program, slice_name, axes, options=None, order="jax", slices=1, **arguments):
    sizes = dict(pair.split("=") for pair in axes.split(","))
    ROWS.append({"name": name, "why": why, "program": program, "slice": slice_name, "slices": slices, "order": order,
                 "axes": {axis: int(size) for axis, size in sizes.items()}, "options": options or {}, "arguments": arguments})


X, Y, XY = ("x", None), (None, "y"), ("x", "y")

# Collectives alone.
row("collectives_v5e", "every kind over one axis and over both", "collectives:every_kind", "v5e:16x16", "x=16,y=16")
row("collectives_v4", "every kind on a torus of three dimensions", "collectives:every_kind", "v4:4x4x4", "x=16,y=4")
row("collectives_v5p", "every kind, axes of split dimensions", "collectives:every_kind", "v5p:2x2x4", "x=4,y=4")
row("collectives_v6e", "every kind without wrap-around", "collectives:every_kind", "v6e:4x8", "x=8,y=4")
row("collectives_tpu7x", "every kind, two devices a chip", "collectives:every_kind", "tpu7x:2x2x2", "x=4,y=4")
row("collectives_h100", "every kind over NVLink and between hosts", "collectives:every_kind", "h100:2x8", "x=2,y=8")
row("permutes_v5e", "shifts along both axes, devices in the order of their numbers", "collectives:permutes", "v5e:4x4", "x=4,y=4", order="ids")
row("permutes_v4", "shifts along both axes of JAX's own order", "collectives:permutes", "v4:2x2x4", "x=4,y=4")
row("permutes_h100", "shifts among the GPUs of a host", "collectives:permutes", "h100:1x8", "x=8")
row("converted_maximum_v4", "an all-reduce that converts bfloat16 to float32", "collectives:converted_maximum", "v4:2x2x1", "x=4")
row("converted_maximum_v6e", "an all-reduce that converts bfloat16 to float32", "collectives:converted_maximum", "v6e:2x4", "x=8")

# Products: no collective, a gather, a scatter, a reduction, an exchange, two dimensions; by types.
row("product_gather_v5e", "2-D operands and result: gathers in windows of permutes", "products:product", "v5e:4x4", "x=4,y=4", left=XY, right=XY, out=XY)
row("product_no_window_v5e", "the same without windows: plain gathers", "products:product", "v5e:4x4", "x=4,y=4",
    options={"xla_jf_spmd_threshold_for_windowed_einsum_mib": "100000"}, left=XY, right=XY, out=XY)
row("product_gather_v5p", "2-D on a torus of three dimensions", "products:product", "v5p:4x4x4", "x=8,y=8", left=XY, right=XY, out=XY, shape=(16384, 16384, 16384))
row("product_gather_tpu7x", "gathers by SparseCores", "products:product", "tpu7x:2x2x2", "x=4,y=4", left=XY, right=XY, out=XY)
row("product_gather_v6e", "2-D over 256 chips", "products:product", "v6e:16x16", "x=16,y=16", left=XY, right=XY, out=XY, shape=(16384, 16384, 16384))
row("product_scatter_v4", "the contraction is sharded, the result scattered", "products:product", "v4:2x2x4", "x=16", left=(None, "x"), right=X, out=X)
row("product_scatter_tpu7x", "a reduce-scatter by SparseCores", "products:product", "tpu7x:2x2x1", "x=8", left=(None, "x"), right=X, out=X)
row("product_scatter_h100", "a reduce-scatter of the result", "products:product", "h100:1x8", "x=8", left=(None, "x"), right=X, out=X)
row("product_reduce_v5p", "the contraction is sharded, the result whole", "products:product", "v5p:2x2x2", "x=8", left=(None, "x"), right=X, out=(None, None))
row("product_reduce_b200", "the contraction is sharded, the result whole", "products:product", "b200:1x8", "x=8", left=(None, "x"), right=X, out=(None, None))
row("product_table_v6e", "ten sharded products: none, gathers, reductions, scatters, of either operand", "products:rows_of_table", "v6e:4x4", "x=4,y=4", shape=(2048, 2048, 2048))
row("product_table_h100", "ten sharded products on two hosts", "products:rows_of_table", "h100:2x8", "x=2,y=8")
row("product_moved_v5e", "an all-to-all behind a product", "products:moved", "v5e:2x4", "x=8")
row("product_moved_h100", "an all-to-all behind a product", "products:moved", "h100:1x8", "x=8")
for machine, place, precision in (("v5e", "v5e:2x4", "default"), ("v5e", "v5e:2x4", "high"), ("v5e", "v5e:2x4", "highest"), ("v5p", "v5p:2x2x2", "default")):
    row(f"product_f32_{precision}_{machine}", f"float32, precision {precision}", "products:product", place, "x=8", left=X, right=(None, None), out=X,
        shape=(8192, 2048, 2048), dtype="float32", precision=precision)
row("product_f32_h100", "float32 as JAX has it by default", "products:product", "h100:1x8", "x=8", left=X, right=(None, None), out=X, dtype="float32")
for machine, place in (("v5e", "v5e:2x4"), ("v6e", "v6e:2x4"), ("v5p", "v5p:2x2x2")):
    row(f"product_int8_{machine}", "int8 x int8 -> int32", "products:product", place, "x=8", left=X, right=(None, None), out=X, dtype="int8", result="int32")
for machine, place in (("v6e", "v6e:2x4"), ("tpu7x", "tpu7x:2x2x1"), ("h100", "h100:1x8"), ("b200", "b200:1x8")):
    row(f"product_fp8_{machine}", "8-bit floats -> bfloat16", "products:product", place, "x=8", left=X, right=X, out=X, dtype="float8_e4m3fn", result="bfloat16")

# Two-dimensional products as kernels.
row("meshslice_v5e", "gathers in slices, in a loop", "two_dimensional:meshslice", "v5e:8x16", "x=8,y=16", shape=(16384, 16384, 16384))
row("meshslice_unrolled_v4", "gathers in slices, unrolled", "two_dimensional:meshslice", "v4:4x4x8", "x=8,y=16", unrolled=True)
row("meshslice_left_v6e", "left operand stays: gathers and scatters in slices", "two_dimensional:meshslice", "v6e:8x8", "x=8,y=8", dataflow="left")
row("meshslice_tpu7x", "gathers in slices by SparseCores, unrolled", "two_dimensional:meshslice", "tpu7x:2x2x4", "x=8,y=4", unrolled=True)
row("meshslice_h100", "gathers in slices on four hosts, unrolled", "two_dimensional:meshslice", "h100:4x8", "x=4,y=8", unrolled=True)
row("cannon_v5e", "blocks go round both axes", "two_dimensional:cannon", "v5e:16x16", "x=16,y=16")
row("cannon_v4", "blocks go round both axes", "two_dimensional:cannon", "v4:4x4x4", "x=8,y=8")
row("summa_v4", "panels are broadcast by masked sums", "two_dimensional:summa", "v4:4x4x4", "x=8,y=8")
row("summa_h100", "panels are broadcast by masked sums", "two_dimensional:summa", "h100:2x8", "x=4,y=4")
row("wang_v5p", "one operand gathered, the other goes round both ways", "two_dimensional:wang", "v5p:4x4x8", "x=8,y=16")
row("wang_v5e", "one operand gathered, the other goes round both ways", "two_dimensional:wang", "v5e:4x8", "x=4,y=8", shape=(8192, 8192, 8192))

# Layers.
row("mlp_fsdp_forward_v5e", "MLP over 16, forward", "layers:mlp", "v5e:4x4", "fsdp=16", kind="fsdp", layers=2, backward=False)
row("mlp_fsdp_v5e", "two MLP layers over 256, forward and backward", "layers:mlp", "v5e:16x16", "fsdp=256", kind="fsdp", tokens=131072, layers=2)
row("mlp_fsdp_tp_v4", "MLP, FSDP 16 x TP 4", "layers:mlp", "v4:4x4x4", "fsdp=16,tp=4", kind="fsdp_tp", tokens=32768)
row("mlp_tp_v6e", "MLP, tensor parallel: all-reduces", "layers:mlp", "v6e:2x4", "tp=8", kind="tp")
row("mlp_sequence_v6e", "MLP, sequence parallel: gathers and scatters", "layers:mlp", "v6e:2x4", "tp=8", kind="sequence")
row("mlp_fsdp_tp_tpu7x", "MLP, FSDP 8 x TP 4", "layers:mlp", "tpu7x:2x2x4", "fsdp=8,tp=4", kind="fsdp_tp", tokens=16384)
row("mlp_fsdp_tp_v5p", "MLP, FSDP 4 x TP 4", "layers:mlp", "v5p:2x2x4", "fsdp=4,tp=4", kind="fsdp_tp")
row("mlp_data_v5e", "MLP, data parallel: combined all-reduces of gradients", "layers:mlp", "v5e:4x4", "data=16", kind="data", tokens=16384, features=2048, wide=8192, layers=3)
row("mlp_fsdp_h100", "MLP over 8 GPUs", "layers:mlp", "h100:1x8", "fsdp=8", kind="fsdp", layers=2)
row("mlp_fsdp_tp_h100", "MLP on two hosts, FSDP 2 x TP 8", "layers:mlp", "h100:2x8", "fsdp=2,tp=8", kind="fsdp_tp")
row("mlp_sequence_b200", "MLP, sequence parallel", "layers:mlp", "b200:1x8", "tp=8", kind="sequence")
row("attention_v5e", "attention, data 8 x TP 4", "layers:attention", "v5e:4x8", "data=8,tp=4")
row("attention_forward_v5p", "attention, forward, data 2 x TP 4", "layers:attention", "v5p:2x2x2", "data=2,tp=4", backward=False)
row("attention_v4", "attention, data 4 x TP 4", "layers:attention", "v4:2x2x4", "data=4,tp=4")
row("attention_h100", "attention, data 2 x TP 4", "layers:attention", "h100:1x8", "data=2,tp=4")
row("attention_b200", "attention, data 2 x TP 4", "layers:attention", "b200:1x8", "data=2,tp=4")

# Experts, sequences, stages.
row("experts_v5e", "experts with a capacity: all-to-all there and back, gradients", "parallel:experts", "v5e:2x4", "expert=8")
row("experts_v5p", "experts with a capacity: all-to-all there and back, gradients", "parallel:experts", "v5p:2x2x4", "expert=16")
row("experts_h100", "experts with a capacity: all-to-all there and back, gradients", "parallel:experts", "h100:1x8", "expert=8")
row("ragged_experts_v5p", "no capacity: ragged all-to-alls and ragged products", "parallel:ragged_experts", "v5p:2x2x2", "expert=8")
row("ragged_experts_v6e", "no capacity: ragged all-to-alls and ragged products", "parallel:ragged_experts", "v6e:2x4", "expert=8")
row("ragged_experts_h100", "no capacity: ragged all-to-alls and ragged products", "parallel:ragged_experts", "h100:1x8", "expert=8")
row("ragged_product_v6e", "rows in groups, each by its own matrix", "parallel:ragged_product", "v6e:2x2", "x=4")
row("ring_attention_v5p", "keys and values go round, in a loop", "parallel:ring_attention", "v5p:2x2x4", "seq=16")
row("ring_attention_unrolled_v5e", "keys and values go round, unrolled", "parallel:ring_attention", "v5e:2x4", "seq=8", unrolled=True)
row("ring_attention_backward_v6e", "keys and values go round, with gradients", "parallel:ring_attention", "v6e:2x4", "seq=8", length=512, unrolled=True, backward=True)
row("ring_attention_h100", "keys and values go round, in a loop", "parallel:ring_attention", "h100:1x8", "seq=8")
row("pipeline_v5e", "4 stages, 8 microbatches, forward and backward", "parallel:pipeline", "v5e:4x4", "stage=4,data=4")
row("pipeline_h100", "8 stages on two hosts, 8 microbatches, forward and backward", "parallel:pipeline", "h100:2x8", "stage=8,data=2")

# Others.
row("fourier_v4", "2-D FFT with an all-to-all", "others:fourier", "v4:2x2x2", "x=8", size=1024)
row("factorized_v5e", "LU with pivots", "others:factorized", "v5e:2x4", "x=8")
row("cholesky_v5p", "Cholesky and a triangular solve", "others:cholesky", "v5p:2x2x1", "x=4")
row("svd_h100", "singular values and vectors of a batch of matrices", "others:singular_values", "h100:1x1", "x=1")
row("embedding_v5e", "the gradient of a sharded table: a scatter, padded reduce-scatters", "others:embedding", "v5e:4x4", "fsdp=4,tp=4")
row("convolutions_v5e", "convolutions of images, gradients", "others:convolutions", "v5e:2x2", "data=4")
row("convolution_first_v5e", "the first layer of a ResNet: 7x7, 3 features to 64", "others:convolution", "v5e:2x2", "data=4")
row("convolution_patches_v5e", "patches of a vision transformer: 16x16, 3 features to 768", "others:convolution", "v5e:2x2", "data=4", features=768, window=16, stride=16)
row("convolution_depthwise_v5e", "a depthwise convolution: 3x3, each of 256 features alone", "others:convolution", "v5e:2x2", "data=4",
    size=28, channels=256, features=256, window=3, stride=1, groups=256)
row("convolution_blocks_v5e", "3x3, 64 features to 64, as in a ResNet's first blocks", "others:convolution", "v5e:2x2", "data=4", size=56, channels=64, window=3, stride=1)
row("branches_v5e", "a conditional and a loop of unknown length", "others:branches", "v5e:4x4", "x=16")
row("sorted_v5p", "sort, top_k, random numbers", "others:sorted_rows", "v5p:2x2x1", "x=4")
row("donated_v5p", "an update in place", "others:updated", "v5p:2x2x1", "x=4")
row("host_update_v5e", "an update whose state is in the host's memory", "others:updated", "v5e:2x2", "x=4", memory="pinned_host")
row("two_slices_v5e", "two slices: products within, gradients between them", "others:between_slices", "v5e:4x4", "pod=2,x=4,y=4", slices=2)
row("two_slices_v5p", "two slices: products within, gradients between them", "others:between_slices", "v5p:2x2x4", "pod=2,x=4,y=4", slices=2)
row("pallas_product_v5e", "a kernel of our own between collectives, its cost given", "kernels:product", "v5e:4x4", "x=4,y=4")
row("pallas_product_no_cost_v6e", "the same, its cost not given", "kernels:product", "v6e:4x4", "x=4,y=4", cost=False)
row("flash_attention_v5e", "JAX's flash attention, forward and backward", "kernels:flash", "v5e:2x2", "x=4")
row("flash_attention_v5p", "JAX's flash attention, forward", "kernels:flash", "v5p:2x2x1", "x=4", backward=False)
row("splash_attention_v5p", "JAX's splash attention, causal, forward and backward", "kernels:splash", "v5p:2x2x1", "x=4")
row("splash_window_v6e", "splash attention with a window of 512 keys, forward", "kernels:splash", "v6e:2x2", "x=4", window=512, backward=False)
row("paged_attention_v5e", "attention to keys and values in pages", "kernels:paged", "v5e:2x2", "x=4")
row("ragged_paged_attention_v6e", "attention of prompts and single tokens to keys and values in pages", "kernels:ragged_paged", "v6e:2x4", "x=8")
row("megablox_v5p", "grouped products by a kernel of Pallas, with gradients", "kernels:megablox", "v5p:2x2x1", "x=4")
row("triton_attention_h100", "JAX's attention by Triton, forward and backward", "kernels:triton", "h100:1x1", "x=1")

# Whole training steps of decoders.
WIDE = {"batch": 256, "length": 1024, "features": 2048, "heads": 16, "wide": 8192, "vocabulary": 32000, "layers": 4}
SMALL = {"batch": 32, "length": 1024, "features": 1024, "heads": 8, "wide": 4096, "vocabulary": 32000, "layers": 2}
ASYNCHRONOUS = {"xla_tpu_enable_async_collective_fusion": "true", "xla_tpu_enable_async_collective_fusion_fuse_all_gather": "true",
                "xla_tpu_enable_async_collective_fusion_multiple_steps": "true", "xla_tpu_overlap_compute_collective_tc": "true",
                "xla_enable_async_all_gather": "true"}
row("decoder_fsdp_full_v5e", "step, FSDP over 256, full rematerialisation", "decoder:step", "v5e:16x16", "fsdp=256", **WIDE, remat="full")
row("decoder_fsdp_tp_v5p", "step, FSDP 16 x TP 4, products saved", "decoder:step", "v5p:4x4x4", "fsdp=16,tp=4", **WIDE, remat="dots")
row("decoder_fsdp_tp_v4", "step, FSDP 8 x TP 4, nothing rematerialised", "decoder:step", "v4:2x4x4", "fsdp=8,tp=4", **SMALL)
row("decoder_fsdp_v6e", "step, FSDP over 256, products saved", "decoder:step", "v6e:16x16", "fsdp=256", **WIDE, remat="dots")
row("decoder_fsdp_tpu7x", "step, FSDP over 16 devices of 8 chips", "decoder:step", "tpu7x:2x2x2", "fsdp=16", **SMALL, remat="dots")
row("decoder_sequence_v5e", "step, FSDP 4 x sequence parallel 4, unrolled", "decoder:step", "v5e:4x4", "fsdp=4,tp=4", **SMALL, scan=False, sequence=True)
row("decoder_asynchronous_v6e", "step with the options for asynchronous collectives", "decoder:step", "v6e:4x4", "fsdp=4,tp=4", **SMALL, remat="dots", options=ASYNCHRONOUS)
row("decoder_accumulated_v5e", "step of 4 microbatches, FSDP over 16", "decoder:step", "v5e:4x4", "fsdp=16", **(SMALL | {"batch": 64}), accumulate=4, remat="full")
row("decoder_optimizer_offload_v5e", "step, the optimizer's state in the host's memory", "decoder:step", "v5e:4x4", "fsdp=16", **SMALL, remat="full", offload=("optimizer",))
row("decoder_inputs_offload_v5p", "step, the layers' inputs saved in the host's memory", "decoder:step", "v5p:2x2x4", "fsdp=16", **SMALL, remat="offload")
row("offloaded_layers_v5p", "gradients of MLP layers, products saved in the host's memory", "decoder:offloaded_layers", "v5p:2x2x2", "fsdp=8")
row("decoder_70b_v5p", "step of 70 billion parameters on 256 chips, FSDP 32 x sequence parallel 8", "large:step", "v5p:8x8x4", "fsdp=32,tp=8")
row("decoder_data_v5e", "step, data parallel", "decoder:step", "v5e:2x4", "data=8", **SMALL)
row("decoder_two_slices_v5e", "step on two slices, FSDP within", "decoder:step", "v5e:4x4", "pod=2,fsdp=16", **SMALL, remat="full", slices=2)
row("decode_v5p", "a token of 64 sequences, keys and values updated in place, TP over 8", "decode:cached", "v5p:2x2x2", "tp=8")
row("layers_v5p", "gradients of MLP layers in a scan, FSDP x TP", "decoder:layers_only", "v5p:4x4x4", "fsdp=16,tp=4")
row("decoder_h100", "step on one GPU", "decoder:step", "h100:1x1", "fsdp=1", **(SMALL | {"batch": 4}), remat="full")
row("decoder_fsdp_h100", "step, FSDP over 8 GPUs, products saved", "decoder:step", "h100:1x8", "fsdp=8", **SMALL, remat="dots")
row("decoder_fsdp_tp_h100", "step on two hosts, FSDP 2 x TP 8", "decoder:step", "h100:2x8", "fsdp=2,tp=8", **SMALL)
row("decoder_fsdp_tp_h100x256", "step on 32 hosts, FSDP 32 x TP 8, unrolled", "decoder:step", "h100:32x8", "fsdp=32,tp=8", **WIDE, scan=False, remat="full")
row("decoder_fsdp_b200", "step, FSDP over 8 GPUs", "decoder:step", "b200:1x8", "fsdp=8", **SMALL)
row("layers_h100x256", "gradients of MLP layers in a scan, FSDP 32 x TP 8", "decoder:layers_only", "h100:32x8", "fsdp=32,tp=8", tokens=131072)
row("layers_pipelined_h100x256", "the same with cuBLAS and gathers a layer ahead", "decoder:layers_only", "h100:32x8", "fsdp=32,tp=8", tokens=131072,
    options={"xla_gpu_enable_triton_gemm": False, "xla_gpu_enable_latency_hiding_scheduler": True, "xla_gpu_enable_pipelined_all_gather": True})
row("product_cublas_h100", "a product by cuBLAS", "products:product", "h100:1x8", "x=8", left=X, right=(None, "x"), out=X, options={"xla_gpu_enable_triton_gemm": False})

# MaxText's training step; arguments are keys of its base.yml.
LLAMA = {"base_emb_dim": 1024, "base_num_query_heads": 8, "base_num_kv_heads": 8, "head_dim": 128, "base_mlp_dim": 2048, "base_num_decoder_layers": 2, "vocab_size": 8192,
         "decoder_block": "llama2", "per_device_batch_size": 1, "max_target_length": 1024, "mlp_activations": ["silu", "linear"]}
MAXTEXT = {"xla_tpu_spmd_rng_bit_generator_unsafe": "true"}
row("maxtext_fsdp_v5e", "MaxText's step of a Llama, scan, full rematerialisation, FSDP over 16", "maxtext_step:step", "v5e:4x4", "fsdp=16", options=MAXTEXT, target="v5e-16",
    **LLAMA, remat_policy="full")
row("maxtext_experts_v5e", "MaxText's step of a Mixtral of 8 experts, grouped products, FSDP over 16", "maxtext_step:step", "v5e:4x4", "fsdp=16", options=MAXTEXT, target="v5e-16",
    **(LLAMA | {"decoder_block": "mixtral", "num_experts": 8, "num_experts_per_tok": 2, "base_moe_mlp_dim": 2048}), remat_policy="full")
row("maxtext_fsdp_tp_v6e", "MaxText's step of a Llama, unrolled, FSDP 4 x TP 4", "maxtext_step:step", "v6e:4x4", "fsdp=4,tensor=4", options=MAXTEXT, target="v6e-16",
    **LLAMA, remat_policy="minimal", scan_layers=False)
NARROW = LLAMA | {"base_emb_dim": 512, "base_num_query_heads": 4, "base_num_kv_heads": 4, "base_mlp_dim": 1024, "vocab_size": 4096}
LATENT = {"decoder_block": "deepseek", "base_num_decoder_layers": 2, "first_num_dense_layers": 1, "num_experts": 8, "num_experts_per_tok": 2, "base_moe_mlp_dim": 512, "shared_experts": 1,
          "attention_type": "mla", "q_lora_rank": 256, "kv_lora_rank": 128, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "v_head_dim": 128}
row("maxtext_int8_v5e", "MaxText's step with products of int8, forward and backward, FSDP over 16", "maxtext_step:step", "v5e:4x4", "fsdp=16", options=MAXTEXT, target="v5e-16",
    **NARROW, quantization="int8", remat_policy="full")
row("maxtext_slices_v5e", "MaxText's step on two slices, FSDP within", "maxtext_step:step", "v5e:4x4", "data=2,fsdp=16", slices=2, options=MAXTEXT, target="v5e-16", **NARROW, remat_policy="full")
row("maxtext_pipeline_v5p", "MaxText's step with 4 stages, 8 microbatches, FSDP over 4", "maxtext_step:step", "v5p:2x2x4", "stage=4,fsdp=4", options=MAXTEXT, target="v5p-32",
    **(NARROW | {"base_num_decoder_layers": 4, "per_device_batch_size": 2}), num_layers_per_pipeline_stage=1, num_pipeline_microbatches=8, remat_policy="full")
row("maxtext_context_v5p", "MaxText's step with sequences over 4, FSDP over 4", "maxtext_step:step", "v5p:2x2x4", "fsdp=4,context=4", options=MAXTEXT, target="v5p-32",
    **(NARROW | {"max_target_length": 2048}), remat_policy="full")
row("maxtext_latent_v5p", "MaxText's step of a DeepSeek: latent attention, 8 experts over 4, FSDP over 16", "maxtext_step:step", "v5p:4x4x4", "fsdp=16,expert=4", options=MAXTEXT, target="v5p-128",
    **(NARROW | LATENT), remat_policy="full", megablox=True, sparse_matmul=True)
row("maxtext_capacity_v5e", "MaxText's step of a Mixtral: 8 experts with a capacity over 4, FSDP over 64", "maxtext_step:step", "v5e:16x16", "fsdp=64,expert=4", options=MAXTEXT, target="v5e-256",
    **(NARROW | {"decoder_block": "mixtral", "num_experts": 8, "num_experts_per_tok": 2, "base_moe_mlp_dim": 1024}), remat_policy="minimal", megablox=False, sparse_matmul=False, capacity_factor=1.25)
row("maxtext_offload_v6e", "MaxText's step, the optimizer's state and saved values in the host's memory, FSDP over 16", "maxtext_step:step", "v6e:4x4", "fsdp=16", options=MAXTEXT, target="v6e-16",
    **NARROW, optimizer_memory_host_offload=True, remat_policy="minimal_offloaded")
row("maxtext_fp8_tpu7x", "MaxText's step with products of fp8, FSDP over 16 devices of 8 chips", "maxtext_step:step", "tpu7x:2x2x2", "fsdp=16", options=MAXTEXT, target="tpu7x-16",
    **NARROW, quantization="fp8", remat_policy="minimal")

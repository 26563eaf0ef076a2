// What a compiler's text writes in another form: transfers that were taken apart are put together again, and asynchronous operations whose computation is left
// out get it. What reads a module then sees a start and a done.
#pragma once

#include "workloads/hlo/hlo_module.hpp"

namespace podsim {

/// An asynchronous collective fusion is one collective in several fusions. The first starts it (custom-call "AsyncCollectiveStart"), products that run
/// meanwhile pass its buffers and flags on and print the collective again, and the last one waits for its end ("AsyncCollectiveDone"):
///
///   before   %s = (bf16[4], bf16[16], u32[]) fusion(%x), calls={.. all-gather .. AsyncCollectiveStart}
///            %f = (f32[8], bf16[4], bf16[16], u32[]) fusion(%s.0, %s.1, %s.2, %y), calls={.. all-gather, convolution ..}
///            %d = bf16[16] fusion(%f.1, %f.2, %f.3), calls={.. all-gather .. AsyncCollectiveDone}
///   after    %s = (bf16[4], bf16[16]) all-gather-start(%x)
///            %f = (f32[8]) fusion(%y), calls={convolution ..}
///            %d = bf16[16] all-gather-done(%s)
///
/// Names and places stay those of the text. A chain in another form, through a loop for one, keeps its fusions, of which only the first moves data: it waits
/// there for the collective, and those that print it again have a free call instead. HloModule::joined counts the instructions that are gone. O(module).
void join_async_collectives(HloModule& module);

/// A send and a recv of one computation that belong together are one transfer, from the send to the recv-done: a collective-permute where the pairs are
/// told (_xla_send_recv_source_target_pairs), and what Megascale names (_xla_megascale_transfer_type) where the data goes through hosts to other slices.
///
///   before   %r = (f32[4], u32[], token[]) recv(%t), channel_id=1
///            %s = (f32[4], u32[], token[]) send(%x, %t), channel_id=1
///            %d = (f32[4], token[]) recv-done(%r)
///   after    %s = (f32[4], f32[4]) collective-permute-start(%x)
///            %d = f32[4] collective-permute-done(%s)
///
/// The recv, the send-done and their tokens become after-alls. Others stay as they are. O(module).
void join_sends(HloModule& module);

/// The text leaves out the computation of an asynchronous operation that has one instruction; it is put back, so that there is one form:
///
///   before   %s = ((f32[12,4], f32[4]), f32[12,4], u32[]) fusion-start(%x, %y), kind=kLoop, calls=%f
///            %d = f32[12,4] fusion-done(%s)
///   after    %s = ((f32[12,4], f32[4]), f32[12,4], u32[]) async-start(%x, %y), calls=%s.wrapped     %s.wrapped has fusion(param_0, param_1), kind=kLoop, calls=%f
///            %d = f32[12,4] async-done(%s)
///
/// Fusions and custom-calls; a copy, a slice or a collective is what its own -start says. Puts the new computations last: before link_hlo() orders them. O(module).
void wrap_starts(HloModule& module);

}  // namespace podsim

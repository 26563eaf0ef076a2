// Reads MSCCL algorithms: XML.
#pragma once

#include <string>
#include <string_view>

#include "sim/base/input_file.hpp"
#include "workloads/msccl/msccl_algorithm.hpp"

namespace podsim {

inline constexpr SizeLimit msccl_limit{Bytes{16'000'000}};
inline constexpr int most_msccl_gpus = 1024;
inline constexpr std::int64_t most_msccl_chunks = std::int64_t{1} << 20;  // of one buffer
inline constexpr std::int64_t most_moved_chunks = std::int64_t{1} << 22;  // of all steps

/// The algorithm in `text`, read from `file`. The parser is pugixml's.
///
///   <algo name proto nchannels nchunksperloop ngpus coll inplace [outofplace minBytes maxBytes]>
///     <gpu id i_chunks o_chunks s_chunks>
///       <tb id send recv chan>
///         <step s type srcbuf srcoff dstbuf dstoff cnt depid deps hasdep/>
///
/// All attributes are needed but those in brackets. GPUs and thread blocks stand in any order, each id once; steps are numbered from 0.
///
///   errors   with line and column: what is no XML; unknown, missing or repeated elements and attributes; values of another form or out of range
///            (chunks that the buffer does not have); steps that need a connection that their thread block lacks; what order_of() finds; more than
///            the limits
///   source   microsoft/msccl-tools, msccl/language/ir.py; Azure/msccl-scheduler, the algorithms of its images
Expected<MscclAlgorithm> read_msccl(std::string_view text, const std::string& file);

}  // namespace podsim

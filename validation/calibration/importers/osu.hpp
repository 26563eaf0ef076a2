// The text that the OSU micro-benchmarks print, and perftest (ib_write_bw and its like).
#pragma once

#include "validation/calibration/importers/imported.hpp"

namespace podsim {

/// Average latencies of collectives (osu_allreduce, osu_allgather, osu_alltoall, osu_bcast, osu_reduce, osu_reduce_scatter) and of osu_latency; bandwidths of osu_bw and osu_bibw.
/// Of MPI, and of NCCL and RCCL (osu_xccl_allreduce).
/// Sizes are OSU's: what one rank sends; of an all-to-all, to each. Ranks are those of `-n N`, `-np N`, or `-N M --ntasks-per-node N` before the table, else `options.devices`; of the point-to-point tests 2.
/// osu_latency is a permute of two devices, osu_bw one of a window of 64 messages, of which each waits for the window before.
/// Errors: no table, no row, a row that is cut short, a unit that is not known, a number of ranks that is not stated. Tables of other tests are skipped with a note.
Expected<Imported> import_osu(std::string_view text, const std::string& file, const ImportOptions& options = {});
/// Whether a line of the beginning of a file is the title of such a table.
bool is_osu_table(std::string_view head);

/// ib_write_bw, ib_read_bw, ib_send_bw: a permute of two devices, of all messages of the test together, which overlap; a bidirectional test's bandwidth is that of both directions.
/// ib_write_lat and the like: a permute of one message.
/// Errors: no table, no row, a row that is cut short, a unit that is not known, a bandwidth that is not the rate of messages times their bytes.
Expected<Imported> import_perftest(std::string_view text, const std::string& file, const ImportOptions& options = {});

}  // namespace podsim

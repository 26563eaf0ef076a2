// Imports measurements from foreign file formats as observations: one function and the table of formats.
#pragma once

#include <span>

#include "sim/config/byte_source.hpp"
#include "validation/calibration/importers/imported.hpp"

namespace podsim {

struct ImportFormat {
  std::string_view name, summary;
  Expected<Imported> (*read)(std::unique_ptr<ByteSource> bytes, const std::string& file, const ImportOptions& options);
  bool (*is)(std::string_view head, std::string_view file);  // by the beginning of a file, unpacked, and its name
  bool (*is_in)(std::string_view text) = nullptr;             // of logs: whether their lines are in a text, behind whatever else was printed
};

/// csv, nccl-tests, nccl-json, nccl-inspector, nccl-csv, osu, perftest, training-log, xplane, trace-json, hlo-stats, meshslice-log. All also accept gzip.
std::span<const ImportFormat> import_formats();
/// The first one that a file `is`; nullptr: none.
const ImportFormat* format_of(std::string_view head, std::string_view file);
/// By the first 64 KiB, as format_of() does, and of a longer text by all of it: launchers and NCCL_DEBUG=INFO print megabytes before the first line of a log (85 kB with 8 ranks, and it grows with them), so that no
/// length of a beginning is enough. It is read piece by piece, 1 MiB at once, up to the first line that tells; binary files, JSON and XML are not. nullptr: none. Errors: it cannot be read.
Expected<const ImportFormat*> format_of_file(const std::string& path);

/// `format` empty: by the content. Errors: no format that is known (what looks like CSV is read as csv, whose errors say what is expected), no such format, and those of the format. `file` is the name in messages.
Expected<Imported> import_observations(std::string_view format, std::string_view bytes, const std::string& file, const ImportOptions& options = {});
/// Reads from a file with no more in memory at once than its format needs; of xplane and trace-json also from a folder, as find_profile() does.
Expected<Imported> import_file(std::string_view format, const std::string& path, const ImportOptions& options = {});

}  // namespace podsim

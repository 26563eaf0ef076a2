// Measurements in the forms that others write, as observations: one function and the table of the forms.
#pragma once

#include <span>

#include "validation/calibration/importers/byte_source.hpp"
#include "validation/calibration/importers/imported.hpp"

namespace podsim {

struct ImportFormat {
  std::string_view name, summary;
  Expected<Imported> (*read)(std::unique_ptr<ByteSource> bytes, const std::string& file, const ImportOptions& options);
};

/// csv, nccl-tests, xplane, trace-json, hlo-stats, meshslice-log. All take their bytes compressed with gzip too.
std::span<const ImportFormat> import_formats();

/// Errors: no such format, and those of the format; `file` is the name in them.
Expected<Imported> import_observations(std::string_view format, std::string_view bytes, const std::string& file, const ImportOptions& options = {});
/// From a file, of which no more is in memory at once than its format needs.
Expected<Imported> import_file(std::string_view format, const std::string& path, const ImportOptions& options = {});

}  // namespace podsim

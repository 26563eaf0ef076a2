// --record: what a command came to, for `podsim report`.
#pragma once

#include <memory>

#include "tools/command/options.hpp"
#include "tools/report/run_report.hpp"
#include "tools/report/sink.hpp"

namespace podsim {

OptionGroup record_options();

/// The file of --record, open; null: it was not asked for. Errors: it cannot be written.
Expected<std::unique_ptr<Sink>> record_request(const Options& options);

/// Of a run, with devices, links and, where that can be, an explanation, whether or not `details` have them. Errors: those of the file; cancelled work.
Status write_record(Sink& sink, const Run& run, Details details, const Options& options, const RunOptions& how);

/// Of another verb: its result as JSON. Errors: those of the file.
Status write_record(Sink& sink, std::string_view verb, std::string_view json, const Options& options);

}  // namespace podsim

// The page of runs, comparisons, searches and so on: one HTML file that loads nothing and explains them to whoever opens it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tools/page/record.hpp"

namespace podsim {

/// Reads a record, or the JSON of a result, which is a record that lacks the rest and says so. Errors: those of read_record(), with `file:line:column`
/// JSON that is none or no result.
Expected<Record> read_record_or_json(std::string_view bytes, const std::string& file);

/// The page of these records, of which `names` are the files. Data stand in it as text that no browser runs. The same records give the same bytes.
std::string page_of(const std::vector<Record>& records, const std::vector<std::string>& names);

}  // namespace podsim

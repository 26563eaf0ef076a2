// A module before and after a change, as text, Markdown and JSON.
#pragma once

#include <string>
#include <vector>

#include "workloads/ledger/ledger_change.hpp"

namespace podsim {

struct ComparedModule {
  std::string file;
  Row row;
};
struct ModuleChange {
  ComparedModule before, after;
  std::vector<LedgerChange> collectives;  // ledger_changes()
  std::vector<std::string> notes{};       // on the request
};

/// Step time, its parts, memory and traffic of both, then the collectives that changed, those first of which the core waits most longer or shorter.
std::string module_change_table(const ModuleChange& change);
/// The same for a pull request.
std::string module_change_markdown(const ModuleChange& change);
/// before, after: the keys of a run; step_s: after less before; collectives: [ {name, was, path, source, kind, axis, bytes, bytes_before, count, count_before, exposed_s, exposed_before_s, change_s} ], also those that did not
/// change; was: null: it is new; name: null: it is gone.
std::string module_change_json(const ModuleChange& change);

}  // namespace podsim

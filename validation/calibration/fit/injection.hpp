// One link or all links of a device together: what limits transfers?
#pragma once

#include <optional>

#include "validation/calibration/fit/identify.hpp"

namespace podsim {

/// One of the three, or none where the machine states a limit, holds it, or transfers take no time.
struct InjectionFinding {
  std::optional<Fit> limited;                   // a fit with chip.injection_bandwidth among its values, clearly better
  std::optional<CalibratedValue> not_limiting;  // fits as well without: it is at least so much
  std::optional<Undetermined> undetermined;     // every observation loads its links in the same way: not identifiable
};
InjectionFinding find_injection(const Fit& without, const CalibrateOptions& options, Predictions& predictions);

}  // namespace podsim

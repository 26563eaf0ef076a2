// Whether one link or a device's injection limits transfers.
#pragma once

#include <optional>

#include "validation/calibration/fit/identify.hpp"

namespace podsim {

/// At most one of the three is set; none if the machine states or holds an injection limit, or transfers take no time.
struct InjectionFinding {
  std::optional<Fit> limited;                   // a clearly better fit, with chip.injection_bandwidth among its values
  std::optional<CalibratedValue> not_limiting;  // the fit without a limit is as good: the limit is at least this value
  std::optional<Undetermined> undetermined;     // every observation loads its links in the same way: not identifiable
};
InjectionFinding find_injection(const Fit& without, const CalibrateOptions& options, Predictions& predictions);

}  // namespace podsim

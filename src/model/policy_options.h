// Parameters of the queueing policies (MQFQ-Sticky section 4 and Table of spec/1; defaults are the paper's).
#pragma once

#include "base/units.h"

namespace fairlead {

struct PolicyOptions {
  Duration over_run = std::chrono::seconds(10);    // T: how far a flow's VT may exceed Global_VT, in GPU service
  double ttl_factor = 2.0;                         // alpha: TTL of an empty flow = alpha x its mean inter-arrival time
  Duration initial_ttl = std::chrono::seconds(2);  // before the second arrival there is no inter-arrival time
  Duration min_ttl{0};
  Duration max_ttl = std::chrono::minutes(10);
};

}  // namespace fairlead

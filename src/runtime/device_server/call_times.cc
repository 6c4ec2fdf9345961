#include "runtime/device_server/call_times.h"

namespace fairlead {

Result<CallTimes> CallTimesPool::take() {
  if (!free_.empty()) {
    const CallTimes times = free_.back();
    free_.pop_back();
    return times;
  }
  CallTimes times;
  for (CUevent* event : {&times.load.begin[0], &times.load.begin[1], &times.load.end[0], &times.load.end[1],
                         &times.begin, &times.run_begin, &times.run_end, &times.done}) {
    const auto made = cuda_.make_event(true);
    if (!made) return fail(made.error());
    *event = *made;
  }
  return times;
}

}  // namespace fairlead

#include "node/event_loop.h"

#include "base/clock.h"

namespace fairlead {

void EventLoop::run() {
  Instant last_event = monotonic_now();
  while (!io_.stopped()) {
    if (io_.poll() > 0) {
      last_event = monotonic_now();
    } else if (!expecting_() || monotonic_now() - last_event > kSpin) {
      io_.run_one();
      last_event = monotonic_now();
    }
  }
}

}  // namespace fairlead

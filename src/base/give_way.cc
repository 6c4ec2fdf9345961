#include "base/give_way.h"

#include <sys/resource.h>
#include <unistd.h>

namespace fairlead {

// Linux has a niceness for each thread, whatever the standard says.
void give_way() {
  const auto thread = static_cast<id_t>(::gettid());
  ::setpriority(PRIO_PROCESS, thread, ::getpriority(PRIO_PROCESS, thread) + kGiveWayNice);
}

}  // namespace fairlead

// For work that may wait, above all what strangers hand in: the calling thread, and the threads and processes that it
// starts from then on, give way to all others on the processors. Where nobody else wants them they lose nothing; beside a
// thread that always does they have a tenth. Threads: any.
#pragma once

namespace fairlead {

inline constexpr int kGiveWayNice = 10;  // on top of the process's own

void give_way();

}  // namespace fairlead

// The page this process shares with the node (wire/shim_page.h). Before the node has answered, and where there is none,
// it is a page of the process itself, so that nobody has to ask.
//
// Threads: any; the page may change under a caller when the node comes back, so it is not kept across calls.
#pragma once

#include "wire/shim_page.h"

namespace fairlead::shim {

namespace page_detail {
extern std::atomic<wire::ShimPage*> current;
}  // namespace page_detail

inline wire::ShimPage& page() {
  return *page_detail::current.load(std::memory_order_relaxed);
}

// Takes the node's page from `descriptor`, which stays the caller's: counters move over, nothing is lost. False: it
// cannot be mapped or is not of this version. One caller at a time.
bool adopt_page(int descriptor);

// In the child of a fork: the parent's page is left alone, and counting starts at nothing.
void leave_page();

// A call was left to the driver because something was in doubt.
inline void count_passed_through() {
  page().passed_through.fetch_add(1, std::memory_order_relaxed);
}

}  // namespace fairlead::shim

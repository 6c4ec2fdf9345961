// The page this process shares with the node (wire/shim_page.h). Before the node has answered, and where there is none,
// it is a page of the process itself, so that nobody has to ask.
//
// It is always at the same address: what changes is the memory there. So no thread can hold a pointer to an earlier page,
// and an addition lands in one or the other, whole.
//
// Threads: any.
#pragma once

#include <cstddef>

#include "wire/shim_page.h"

namespace fairlead::shim {

inline constexpr std::size_t kPageBytes = 4096;

namespace page_detail {
struct alignas(kPageBytes) Frame {  // nothing else is in its page of memory
  wire::ShimPage page;
};
extern Frame frame;
}  // namespace page_detail

inline wire::ShimPage& page() {
  return page_detail::frame.page;
}

// A new page of the process's own, counting from nothing: at the start, and in the child of a fork, where the parent's is
// left alone.
void begin_page();

// Takes the node's page from `descriptor`, which stays the caller's: counters move over, nothing is lost. False: it
// cannot be mapped or is not of this version. One caller at a time. REQUIRES: begin_page().
bool adopt_page(int descriptor);

// A call was left to the driver because something was in doubt.
inline void count_passed_through() {
  page().passed_through.fetch_add(1, std::memory_order_relaxed);
}

}  // namespace fairlead::shim

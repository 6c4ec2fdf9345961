// How a hook is written. A hook is the exported symbol itself: the same name and signature as the driver's, a few lines
// around the call of the driver's own function.
//
//   GATED   the call touches memory that may be away: it passes the gate
//   QUEUED  and puts work on a stream: GPU time is measured from there
//   KERNEL  and counts as a launch
//
// A hook called from inside another (by the driver, through its own exported functions) goes straight to the driver.
#pragma once

#include "shim/driver.h"
#include "shim/gate.h"
#include "shim/gpu_time.h"
#include "shim/leash.h"
#include "shim/leash_book.h"

#define HOOK extern "C" __attribute__((visibility("default"))) CUresult

namespace fairlead::shim {

// The stream that a null handle means in the functions with the suffix _ptsz.
inline CUstream per_thread(CUstream stream) {
  return stream != nullptr ? stream : CU_STREAM_PER_THREAD;
}

inline void pass_work(const Passage& passage, CUstream stream) {
  if (passage.slot() != nullptr) note_work(stream);
}
// True: leash_launched() is to follow the launch. `key()` names the piece of work (leash_book.h).
template <typename Key>
inline bool pass_kernel(const Passage& passage, CUstream stream, Key key) {
  if (passage.slot() == nullptr) return false;
  count_launch(passage.slot());
  return note_kernel(passage.slot(), stream, key);
}

}  // namespace fairlead::shim

#define GATED(name, parameters, arguments) \
  HOOK name parameters {                   \
    const fairlead::shim::Passage passage; \
    return FAIRLEAD_REAL(name) arguments;  \
  }
#define QUEUED(name, on_stream, parameters, arguments) \
  HOOK name parameters {                               \
    const fairlead::shim::Passage passage;             \
    fairlead::shim::pass_work(passage, on_stream);     \
    return FAIRLEAD_REAL(name) arguments;              \
  }
#define KERNEL(name, on_stream, key, parameters, arguments)                                                          \
  HOOK name parameters {                                                                                             \
    const fairlead::shim::Passage passage;                                                                           \
    const bool is_leashed = fairlead::shim::pass_kernel(passage, on_stream, [&]() -> std::uint64_t { return key; }); \
    const CUresult result = FAIRLEAD_REAL(name) arguments;                                                           \
    if (is_leashed) fairlead::shim::leash_launched(on_stream);                                                       \
    return result;                                                                                                   \
  }

// Both stream modes; the parameter is called `stream`.
#define GATED_BOTH(name, suffix, parameters, arguments) \
  GATED(name, parameters, arguments)                    \
  GATED(name##suffix, parameters, arguments)
#define QUEUED_BOTH(name, parameters, arguments) \
  QUEUED(name, stream, parameters, arguments)    \
  QUEUED(name##_ptsz, fairlead::shim::per_thread(stream), parameters, arguments)
#define KERNEL_BOTH(name, key, parameters, arguments) \
  KERNEL(name, stream, key, parameters, arguments)    \
  KERNEL(name##_ptsz, fairlead::shim::per_thread(stream), key, parameters, arguments)

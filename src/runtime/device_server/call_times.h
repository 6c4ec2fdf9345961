// When the device did what for a call: events that are recorded on its lane, and those of its copies. They are made once and used
// by call after call.
//
// Threads: the device server's loop.
#pragma once

#include <vector>

#include "gpu/context.h"
#include "runtime/device_server/copy_streams.h"

namespace fairlead {

struct CallTimes {
  CopyStreams::Batch load;                                                          // on the copy streams
  CUevent begin = nullptr, run_begin = nullptr, run_end = nullptr, done = nullptr;  // on the lane
};

class CallTimesPool {
 public:
  explicit CallTimesPool(CudaContext& cuda) : cuda_(cuda) {}

  Result<CallTimes> take();  // errors: the driver's
  void give_back(const CallTimes& times) { free_.push_back(times); }

 private:
  CudaContext& cuda_;
  std::vector<CallTimes> free_;
};

}  // namespace fairlead

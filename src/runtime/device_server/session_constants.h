// Which constants of which sessions are on the device, as the node is told: it sends calls where they are, and reckons with the time
// that those take which are not.
//
// Threads: the device server's loop.
#pragma once

#include <optional>

#include "decide/residency/session_residency.h"
#include "model/kernel_task.h"
#include "runtime/device_server/device_objects.h"
#include "wire/device_frames.h"

namespace fairlead {

class SessionConstants {
 public:
  SessionConstants(DeviceObjects& objects, double load_bytes_per_second)
      : objects_(objects), load_bytes_per_second_(load_bytes_per_second) {}

  void add(const wire::RegisterSession& frame, const KernelTask& task);
  void remove(std::uint64_t session) { residency_.remove(session); }
  // What the loads of a call took; of one that says nothing about speed nothing changes.
  void measured(const CopyStreams::Batch& loads);
  // What has changed since the last one.
  std::optional<wire::ConstantsMissing> changes();

 private:
  DeviceObjects& objects_;
  SessionResidency residency_;
  double load_bytes_per_second_;  // of the last large load
};

}  // namespace fairlead

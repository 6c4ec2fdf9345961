// Who computes and copies on a device now, as all processes see it, and what follows for one of them: the SMs that its
// kernel gets beside others, the copies it shares the link with. Also each client's account of modelled time.
//
// A killed client leaves its words behind; whoever reads them asks whether the process lives.
#pragma once

#include <cstdint>

#include "softgpu/device/clients.h"
#include "softgpu/device/control.h"
#include "softgpu/device/device_lock.h"
#include "softgpu/device/time/busy_meter.h"
#include "softgpu/device/time/time_model.h"
#include "softgpu/device/users.h"

namespace softgpu {

// What a process may use of a device.
struct ClientShare {
  bool mps = false;            // computes side by side with other MPS clients; else processes take turns
  bool below_normal = false;   // the priority of an MPS client
  bool faults_shared = false;  // a fault of one MPS client hits them all
  std::uint64_t sms = 0;
  std::uint64_t memory_limit = 0;  // bytes; 0: none
  unsigned max_contexts = 0;       // of all MPS clients of the device
};

// Thread-safe.
class Activity {
 public:
  // `share` is what this process may use from now on.
  Activity(Control& control, DeviceLock& lock, const Clients& clients, Owner self, const ClientShare& share);

  // A kernel of an MPS client that can use `sms` begins or ends to compute. Others' kernels are counted by Turn.
  void begin_kernel(std::uint64_t sms);
  void end_kernel(std::uint64_t sms);
  void begin_copy(Direction direction) { mine().copies[static_cast<int>(direction)].fetch_add(1); }
  void end_copy(Direction direction) { mine().copies[static_cast<int>(direction)].fetch_sub(1); }

  // What one kernel of this MPS client, which can use `sms`, gets now. REQUIRES: it has begun.
  KernelGrant grant(std::uint64_t sm_count, std::uint64_t sms) const;
  // Copies under way in this direction, of all processes; at least 1.
  std::uint64_t copies(Direction direction) const;

  // One more context of an MPS client, and what the MPS server may have against it.
  enum class ContextRefusal {
    kNone,
    kTooMany,   // its clients have share.max_contexts
    kDraining,  // a client that a shared fault has hit is left: the server waits for the last of them to exit
  };
  ContextRefusal add_context(const ClientShare& share);
  void remove_context() { mine().contexts.fetch_sub(1); }

  void charge_kernel(std::uint64_t modelled_ns);
  void charge_copy(std::uint64_t modelled_ns);

 private:
  ClientActivity& mine() const { return control_.activity[self_.slot]; }
  bool living(const ClientActivity& client) const;

  Control& control_;
  DeviceLock& lock_;
  const Clients& clients_;
  const Owner self_;
  BusyMeter meter_;
  Users users_;
};

// Whether an MPS client that lives has a kernel on the device.
bool mps_kernels_run(const Control& control, const Clients& clients);

}  // namespace softgpu

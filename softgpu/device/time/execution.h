// A kernel's stay on the device, from the wait for the right to compute to the end of its modelled time. The caller
// executes the kernel in between, or not at all (charge mode).
//
//   Execution execution(device, {"saxpy", 1024}, stop);
//   if (!execution.begin()) return;     // the context ended meanwhile
//   outcome = ...                       // execution.pause() from time to time
//   execution.end(work);
//
// Processes take turns (turn.h), or are MPS clients and compute side by side. In the paced modes end() holds the caller
// until the kernel's modelled time has passed; the time that the execution took counts. MPS clients make progress at
// the speed that their SMs of the moment give, so a kernel slows down when another client's begins.
//
// Example: two clients of 60 % each of 80 SMs ask for 96. A kernel that takes 10 ms on its 48 SMs runs alone for 5 ms,
// then beside the other on 40: the second half takes 6 ms.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <string>

#include "softgpu/device/device.h"

namespace softgpu {

class Execution {
 public:
  struct Kernel {
    std::string name;
    std::uint64_t blocks = 1;
    std::uint64_t most_sms = ~std::uint64_t{0};  // of a green context
  };

  // `stop` must outlive the execution.
  Execution(Device& device, Kernel kernel, const StopCheck& stop);

  // Waits until this process may compute. False when `stop` ended the waiting: nothing else may be called.
  bool begin();
  // The kernel, and a hang of the device, shall end when it has been on the device for `timeout_ns`. The time of
  // monotonic_ns() at which that is: it moves while the turn is away. REQUIRES: begun.
  const std::atomic<std::uint64_t>& set_timeout(std::uint64_t timeout_ns);
  // To be called often while the kernel is executed: gives the device to others when the slice is over, and hangs when
  // that fault is injected. Thread-safe.
  void pause();
  // Charges `work` (its blocks are the kernel's) and holds the caller for the modelled time.
  void end(KernelWork work);

 private:
  void hold(const KernelWork& work);
  KernelGrant grant() const;
  std::uint64_t share_milli_sms() const { return std::min(kernel_.most_sms, device_.sms()) * 1000; }
  void wait_while_hung();
  void move_deadline();
  std::uint64_t away_ns() const { return device_.turn().away_ns() - away_at_begin_ns_; }
  void trace(const KernelWork& work, std::uint64_t modelled_ns) const;

  Device& device_;
  const Kernel kernel_;
  const StopCheck& stop_;
  const std::uint64_t sms_;                    // that the kernel can use
  std::uint64_t timeout_ns_ = 0;               // 0: none
  std::atomic<std::uint64_t> deadline_ns_{0};  // 0: never
  std::uint64_t asked_ns_ = 0;
  std::uint64_t begin_ns_ = 0;
  std::uint64_t away_at_begin_ns_ = 0;
  std::uint64_t executed_ns_ = 0;  // when the execution ended
};

// A copy over the device's link, which all processes share by direction: make one, move the bytes, finish().
class Transfer {
 public:
  Transfer(Device& device, Direction direction);
  ~Transfer() { device_.activity().end_copy(direction_); }
  Transfer(const Transfer&) = delete;
  Transfer& operator=(const Transfer&) = delete;

  // Charges the copy, and in the paced modes holds the caller until the bytes have crossed the link.
  void finish(std::uint64_t bytes, const StopCheck& stop);

 private:
  Device& device_;
  const Direction direction_;
  const std::uint64_t begin_ns_;
};

}  // namespace softgpu

// Who may be looking at mapped memory: the kernels, copies and fills of this process that run. Each is a MemoryUse for as
// long as it may keep what a lookup (Window::find and its kin) told it.
//
// Memory may be taken away while they run, and nobody waits for them: a kernel may run until the thread that frees tells
// it to end. So memory goes in two steps, as in any reclamation by grace periods:
//
//   1. It cannot be found any more. A use that begins now never meets it; one that runs may still have its address.
//   2. What such a use could trip over goes when every use that ran at step 1 has ended (retire).
//
// Physical pages need no second step: where uses run, memory that anyone can read and write takes their place in one
// system call (Window::unmap), so the page may be another process's at once, and a use too late meets scratch instead of
// a signal. What is left for retire() is to take addresses out of the process.
//
// Example: kernel K runs (use 1); the program frees a reservation: retired, for uses before 2; kernel L begins (use 2);
// K ends, and the addresses are unmapped though L still runs. New work never prolongs the wait.
#pragma once

#include <cstdint>
#include <functional>

namespace softgpu {

class MemoryUse {
 public:
  // Begins and ends a use: one uncontended lock each. The end may run actions of retire().
  MemoryUse();
  ~MemoryUse();
  MemoryUse(const MemoryUse&) = delete;
  MemoryUse& operator=(const MemoryUse&) = delete;

  // Whether no use runs. True means: what cannot be found any more is met by nobody. Thread-safe, as is everything here.
  static bool none();

  // Calls `action` once when every use that runs now has ended: at once if there is none, else on the thread that ends
  // the last of them, which holds no lock of the caller's.
  static void retire(std::function<void()> action);

  // Unmaps [address, address + bytes) of the process by retire(); its content is given up at once.
  static void retire_mapping(std::uint64_t address, std::uint64_t bytes);

  // Returns when every use that runs now has ended. Only for calls that CUDA lets wait for the device, since a kernel
  // may wait for its caller. REQUIRES: the caller is in no use.
  static void wait_for_all();

 private:
  std::uint64_t number_ = 0;  // in the order of their beginning
  MemoryUse* before_ = nullptr;
  MemoryUse* behind_ = nullptr;
};

}  // namespace softgpu

// Descriptors whose locks say that this process lives, or holds something. A child of fork is not a client of the device
// and has none of the driver's threads; with such a descriptor it would keep alive what belonged to a parent that is
// gone. So the child closes them, and no child begins between a descriptor's opening and its entry here.
#pragma once

namespace softgpu {

class PrivateDescriptors {
 public:
  // While one lives, fork() of any thread waits.
  class NoFork {
   public:
    NoFork();
    ~NoFork();
    NoFork(const NoFork&) = delete;
    NoFork& operator=(const NoFork&) = delete;
  };

  // Both are thread-safe. REQUIRES for close: the thread has no NoFork.
  static void add(const NoFork& proof, int descriptor);
  // Closes what was added. Does nothing in a child of fork, where the number may already mean another file.
  static void close(int descriptor);
};

}  // namespace softgpu

// Who has contexts on a device (a GPU or a MIG compute instance), and how busy each of them was.
//
// A user is marked in the device's control segment from its first context to its last; a mark of a process that died
// counts for nothing. Marks are set under the lock of the machine's folder, so that an instance is not
// destroyed while a process begins to use it.
//
// How busy: time is cut into windows of half a second; a user keeps the time it computed in the current window and in the
// one before. The last half second is the current window and the overlapping part of the one before, taken as even.
// Example: 0.1 s into a window with 40 ms so far and 200 ms before: (40 + 200 * 0.8) / 500 = 40 %.
#pragma once

#include <vector>

#include "softgpu/device/clients.h"
#include "softgpu/device/control.h"

namespace softgpu {

class Users {
 public:
  Users(Control& control, const Clients& clients) : control_(control), clients_(clients) {}

  // Thread-safe.
  void add(Owner user);
  void remove(Owner user) { control_.users[user.slot].owner.store(0); }

  // The living users, by slot.
  std::vector<Owner> list() const;
  // Whether somebody but `self` uses the device.
  bool others(Owner self) const;
  bool any() const { return !list().empty(); }

  // `user` computes from `now_ns` on, and until then. REQUIRES for both: called by that process only, one thread at a
  // time.
  void begin(Owner user, std::uint64_t now_ns) { control_.users[user.slot].since_ns.store(now_ns); }
  void end(Owner user, std::uint64_t now_ns);
  // The part of the last half second in which `user` computed, 0 to 1.
  double busy(Owner user, std::uint64_t now_ns) const;

 private:
  Control& control_;
  const Clients& clients_;
};

}  // namespace softgpu

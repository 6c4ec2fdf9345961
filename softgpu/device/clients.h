// The client processes of a machine. Each takes a slot and holds a record lock on that byte of the file `slots` until
// it ends; the kernel drops the lock with the process, however it dies, so a slot needs no heartbeat and no pid.
//
// Example: process A locks byte 0 and writes generation 7; it is killed; process B finds byte 0 free, locks it and
// writes generation 8. Pages marked (0, 7) now belong to nobody, those marked (0, 8) to B.
//
// Record locks belong to the process and fall when it closes *any* descriptor of the file. Hence one descriptor per
// library, never closed; queries use open-file-description requests, which also see the locks of their own process.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>

#include "softgpu/device/machine.h"
#include "softgpu/device/memory/shares.h"
#include "softgpu/device/owner.h"
#include "softgpu/device/result.h"

namespace softgpu {

class Clients {
 public:
  // Opens the client table of `machine`, creating it when absent.
  static Result<Clients> open(const Machine& machine);

  // Takes a free slot for this process. Call once per process. Error: all slots are taken.
  Result<Owner> join();

  // Whether the process that `owner` names still lives. Thread-safe; one system call.
  bool alive(Owner owner) const;

  // The owner of a slot now, if it lives; `pid` in the caller's pid namespace, 0 when it cannot be seen from there.
  struct Live {
    Owner owner;
    int pid = 0;
  };
  std::optional<Live> live(std::uint32_t slot) const;

  // Memory that outlives the process that made it.
  const Shares& shares() const { return shares_; }

 private:
  struct Table;
  Clients(Table* table, int slots, Shares shares) : table_(table), slots_(slots), shares_(std::move(shares)) {}
  int holder(std::uint32_t slot) const;

  Table* table_;
  int slots_;
  Shares shares_;
};

}  // namespace softgpu

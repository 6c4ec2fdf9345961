// Stopping a process's use of its devices from outside and taking its memory off them, as cuCheckpointProcess* does.
//
//   running ──lock──> locked ──checkpoint──> checkpointed ──restore──> locked ──unlock──> running
//                                            checkpointed ──restore on a full device──> stranded, until it is killed
//
// The state is one word of the process's row in the client table, with the process's generation, so that a change is one
// store and the next process of the slot has nothing of it. A checkpoint moves nothing: the pages' bytes lie in the
// computer's memory anyway, so their owner keeps places and mappings, and all who count pages leave his out
// (PagePool). Whoever dies, at any instruction, leaves one of the states behind; another may go on from it.
//
// Example: A runs a kernel and waits for it, `under_way` is 2. B locks A: the word says locked, A's next launch sleeps on
// it, the kernel ends, the wait returns, under_way is 0 and B has the lock. B is killed; C unlocks A, and it launches.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "softgpu/device/device.h"
#include "softgpu/mutex.h"

namespace softgpu {

// The held side: what a process's calls pass. Thread-safe.
class CallGate {
 public:
  CallGate(const Clients& clients, Owner self)
      : row_(clients.row(self)), running_(ClientRow::hold_word(self, HoldState::kRunning)) {}

  // Whether nobody holds the process.
  bool open() const { return row_.hold.load() == running_; }
  // Returns when nobody does.
  void wait() const;
  // Something is under way until leave(): whoever locks the process waits for that. Whether the gate was open is to be
  // asked afterwards, unless something else is under way: then either we see the lock, or who locks sees us.
  void add() { row_.under_way.fetch_add(1); }
  void leave() {
    if (row_.under_way.fetch_sub(1) == 1 && !open()) wake_who_locks();
  }
  // wait() and add(), as one.
  void enter();
  // From now on the process shares memory with another one, or may. REQUIRES: entered.
  void note_sharing() { row_.shares.store(1); }

 private:
  void wake_who_locks();

  ClientRow& row_;
  const std::uint32_t running_;
};

enum class HoldResult {
  kDone,
  kNoProcess,   // no client of the machine has this pid, as far as one can see from here
  kWrongState,  // nothing has changed
  kTimeout,     // work did not end; the process is not locked
  kUnderWay,    // it is locked, and its work has not ended: who locked it has died or waits still
  kShares,      // other processes have its memory, or it theirs
  kNoRoom,      // a device is full: the process is stranded
  kStranded,    // a restore of it found a device full before, and as with NVIDIA's 580 none is done any more
  kBroken,      // the machine's state cannot be read
};

// The side that holds others. Thread-safe; refers to its arguments, which must outlive it.
class Holder {
 public:
  // Told the bytes that cross the link of a part, which takes the time it takes.
  using Copy = std::function<void(const Part& part, Direction direction, std::uint64_t bytes)>;

  Holder(const Machine& machine, const Clients& clients, Owner self)
      : machine_(machine), clients_(clients), self_(self) {}

  std::optional<HoldState> state(int pid) const;
  // Waits for what is under way; `timeout_ms` 0: as long as it takes.
  HoldResult lock(int pid, unsigned timeout_ms) const;
  HoldResult unlock(int pid) const;
  HoldResult checkpoint(int pid, const Copy& copy);
  HoldResult restore(int pid, const Copy& copy);

 private:
  // The memory of a GPU or GPU instance.
  struct Memory {
    const DeviceView* view = nullptr;
    std::uint64_t pages = 0;  // the process's
  };
  class Locks;

  std::optional<Owner> find(int pid) const;
  bool change(Owner owner, HoldState from, HoldState to) const;
  Result<std::vector<Memory>> memories(Owner owner);
  static void copy_all(const std::vector<Memory>& memories, Direction direction, const Copy& copy);

  const Machine& machine_;
  const Clients& clients_;
  const Owner self_;
  Mutex mutex_;
  std::map<std::string, std::unique_ptr<DeviceView>> views_ SOFTGPU_GUARDED_BY(mutex_);  // by UUID
};

}  // namespace softgpu

// The client processes of a machine. Each takes a slot and holds a lock on that byte of the file `slots` until it ends;
// the kernel drops the lock with the process, however it dies, so a slot needs no heartbeat and no pid.
//
// Example: process A locks byte 0 and writes generation 7; it is killed; process B finds byte 0 free, locks it and
// writes generation 8. Pages marked (0, 7) now belong to nobody, those marked (0, 8) to B.
//
// The lock belongs to an open file description that nothing but a mapping of this process refers to: a program that
// closes every descriptor it finds cannot drop it, and a child of fork, which does not get the mapping, cannot keep it.
// Such a lock does not say whose it is. For that the process holds a record lock on byte kMaxClients + slot as well,
// which falls when it closes any descriptor of the file; then the slot's pid is unknown, and no more than that.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>

#include "softgpu/device/machine.h"
#include "softgpu/device/memory/shares.h"
#include "softgpu/device/owner.h"
#include "softgpu/device/result.h"

namespace softgpu {

// What others have done to a client (hold.h).
enum class HoldState : std::uint32_t { kRunning, kLocked, kCheckpointed, kStranded };
// Its memory is off the device: checkpointed, or stranded there.
inline bool is_off_device(HoldState state) {
  return state == HoldState::kCheckpointed || state == HoldState::kStranded;
}

// What is shared about a slot's process. All words but `hold` are written by that process only.
struct ClientRow {
  alignas(64) std::atomic<std::uint32_t> generation;
  std::atomic<std::uint32_t> hold;       // hold_word(): says something of that generation only
  std::atomic<std::uint32_t> under_way;  // calls and operations that have begun and not ended
  std::atomic<std::uint32_t> shares;     // 1: other processes have had its memory, or it theirs

  static std::uint32_t hold_word(Owner owner, HoldState state) {
    return owner.generation << 2 | static_cast<std::uint32_t>(state);
  }
};

class Clients {
 public:
  // In a folder that is shared with a group (files.h), slots that its members leave to the owner, and the most that the
  // members of one container (one pid namespace) may have. Both bind who takes slots by join(), not who locks bytes of
  // the file by hand.
  static constexpr std::uint32_t kOwnersSlots = 64;
  static constexpr std::uint32_t kMostOfContainer = 64;

  // Opens the client table of `machine`, creating it when absent.
  static Result<Clients> open(const Machine& machine);

  // Takes a free slot for this process. Call once per process. Error: all slots are taken, or as many as this container
  // may have, or the process has too many descriptors or mappings.
  Result<Owner> join();

  // Whether the process that `owner` names still lives. Thread-safe; one system call.
  bool alive(Owner owner) const;

  // The owner of a slot now, if it lives; `pid` in the caller's pid namespace, 0 when it cannot be seen from there
  // or the process closed a descriptor of `slots`.
  struct Live {
    Owner owner;
    int pid = 0;
  };
  std::optional<Live> live(std::uint32_t slot) const;

  // Why the table cannot be what this library wrote, empty when it can.
  std::string damage() const;

  // REQUIRES: a slot below kMaxClients.
  ClientRow& row(Owner owner) const;
  // What others have done to a process; kRunning when it is gone. Thread-safe; no system call.
  HoldState held(Owner owner) const;
  // Whether any process of the machine was ever checkpointed: one load, for those who would have to look.
  bool ever_checkpointed() const;
  void note_checkpoint() const;
  // Returns when the process is not checkpointed, or not any more. Thread-safe.
  void wait_while_checkpointed(Owner owner) const;

  // Memory that outlives the process that made it.
  const Shares& shares() const { return shares_; }

 private:
  struct Table;
  Clients(Table* table, int slots, std::string path, Shares shares)
      : table_(table), slots_(slots), path_(std::move(path)), shares_(std::move(shares)) {}
  struct Holder {
    bool alive = false;
    int pid = 0;
  };
  Holder holder_of_byte(std::uint32_t byte) const;
  // Slots that join() may give this process; the reason when there is none.
  Result<std::uint32_t> slots_to_take() const;

  Table* table_;
  int slots_;  // holds the record lock of the pid; never closed
  std::string path_;
  Shares shares_;
};

}  // namespace softgpu

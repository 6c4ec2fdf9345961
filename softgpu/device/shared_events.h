// Events that several processes record and wait for: rows of a table in the state folder.
//
// A recording takes the row's next number when it is submitted and says so when it has run; whoever waits takes the last
// number given out and waits until that recording has run. A row belongs to the process that made it and can be taken
// again when that process is gone. A recording whose process died counts as completed: its work has ended.
//
// Several processes may record, so each of the last kRecordings recordings has a word of its own that names its process.
// Of an older one is known only what holds for all: it has ended when a later one has, or when the process that recorded
// last is gone.
//
// Example: A records number 3 behind a kernel; B, which opened the event, sees 3 and waits; C records number 4 and is
// killed: 4 counts as completed, 3 does not. A's kernel ends, word 3 says so, B is woken.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>

#include "softgpu/device/clients.h"
#include "softgpu/device/stop_check.h"

namespace softgpu {

inline constexpr unsigned kMaxSharedEvents = 4096;
inline constexpr unsigned kRecordings = 16;

class SharedEvents {
 public:
  // A row and its use: a stale name is told from a live one.
  struct Name {
    std::uint32_t row = 0;
    std::uint32_t use = 0;
  };

  // Makes the table of `machine` where it is absent, for processes that may not: members of a shared folder's group.
  static Status make(const Machine& machine);
  // Why nobody can open the table of `machine`; empty when all can.
  static std::string damage(const Machine& machine);
  // Opens the table of `machine`, creating it when absent. `clients` outlives it.
  static Result<SharedEvents> open(const Machine& machine, const Clients& clients, Owner self);

  // A new event of this process; nothing when the table is full. Thread-safe, as is everything here.
  std::optional<Name> create();
  void destroy(Name name);
  // Whether the name is of a live event, and who made it.
  bool valid(Name name) const;
  Owner creator(Name name) const;

  // Gives out the number of a recording; says that it has run.
  std::uint64_t submit(Name name);
  void complete(Name name, std::uint64_t number);
  // The last number given out, 0 when there was none.
  std::uint64_t last(Name name) const;
  bool reached(Name name, std::uint64_t number) const;
  // Waits until reached() or `stop`.
  void wait(Name name, std::uint64_t number, const StopCheck& stop) const;

 private:
  struct Row;
  struct Table;
  SharedEvents(Table* table, const Clients& clients, Owner self) : table_(table), clients_(&clients), self_(self) {}
  Row& row(Name name) const;

  Table* table_;
  const Clients* clients_;
  Owner self_;
};

}  // namespace softgpu

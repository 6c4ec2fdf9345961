// The arenas of all processes and the budget they share (staging_budget.h), with real memory. Pages are made here, not
// where they are first touched: there they would count against the function's own memory limit.
//
// Threads: everything on one thread; the slow part, making and dropping pages, is handed to `background`.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>

#include "base/lifetime.h"
#include "base/result.h"
#include "base/unique_fd.h"
#include "runtime/shim/staging_budget.h"

namespace fairlead {

// Runs `job` on some other thread, jobs in order, and `done` with its result on this thread, later.
using Background = std::function<void(std::function<bool()> job, std::function<void(bool)> done)>;

class StagingArenas {
 public:
  using Process = StagingBudget::Process;

  StagingArenas(Bytes budget, Background background) : budget_(budget), background_(std::move(background)) {}

  const StagingBudget& budget() const { return budget_; }
  std::uint64_t arena_bytes() const { return static_cast<std::uint64_t>(budget_.budget().count()); }

  // A new arena; the descriptor stays ours. REQUIRES: arena_bytes() > 0 and the process has none.
  Result<int> open(Process process);
  // `done` with the offset, or empty when there is none; from inside when the pages are there. Not called when the process
  // was removed meanwhile. `bytes`: a multiple of the granule, above 0.
  void request(Process process, std::uint64_t bytes, std::function<void(std::optional<std::uint64_t>)> done);
  // False: that was never granted.
  bool give_back(Process process, std::uint64_t offset, std::uint64_t bytes);
  // Its pages are dropped, even if something still maps them. No effect when it has none.
  void remove(Process process);

 private:
  StagingBudget budget_;
  Background background_;
  std::map<Process, std::shared_ptr<UniqueFd>> memory_;  // shared with jobs that run
  Lifetime life_;
  bool complained_ = false;
};

}  // namespace fairlead

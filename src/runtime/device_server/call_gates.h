// When calls of kernel tasks may begin: each session has a page as a program's process has (wire/shim_page.h), and what the shim does
// for launches is done here for calls. A call is one piece: it begins while its session has a place, and runs to its end. One that is
// known to take long is launched piece by piece (call_steps.h): between two it may lose its place, and goes on in the next.
//
//   call waits, gate closed ──> asking = 1, bell          node ──> grant, gate open, doorbell ──> the loop wakes, the call begins
//   call ended, none waits  ──> gate closed, drained, bell         another waits, the place is not over ──> it begins at once
//   node closes the gate    ──> nothing begins; drained, bell once the call that runs has ended
//
// Example: a session of a function with 40 % of the device. Its call takes 3 ms of a frame of 2: the millisecond is debt.
//
// A session whose page says that nobody paces it begins calls whenever they come. A futex would stop the loop, so that the node rings a
// doorbell (an eventfd) beside the page.
//
// Threads: the device server's loop.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "base/result.h"
#include "base/unique_fd.h"
#include "base/units.h"
#include "wire/shim_page.h"

namespace fairlead {

class CallGates {
 public:
  // How late a place is ended here, where the node does not: as the shim's watch.
  static constexpr Duration kLate = std::chrono::microseconds(250);

  // From now on calls of the session need places. The descriptors are duplicated. kInvalidArgument: the page is too small.
  // whole: its calls are one piece each, however long.
  Status add(std::uint64_t session, const UniqueFd& page, const UniqueFd& doorbell, bool whole = false);
  void remove(std::uint64_t session) { gates_.erase(session); }

  // A call of the session is next. False: it waits at the gate, and the node knows.
  bool may_begin(std::uint64_t session, Instant now);
  void began(std::uint64_t session);  // REQUIRES: may_begin(), and none of its calls runs
  void ended(std::uint64_t session, Duration gpu_time);
  // Of a call that has begun and is launched piece by piece. The place is over: nothing of it is in flight, and it waits for the next.
  void pauses(std::uint64_t session);
  void used(std::uint64_t session, Duration gpu_time);  // so far, and is not told again when it ends
  // What is left of the session's place; none: it has none. A session that nobody paces has all the time there is.
  std::optional<Duration> left(std::uint64_t session, Instant now) const;
  // Its calls need places, and may be launched piece by piece.
  bool may_be_cut(std::uint64_t session) const;
  // Gives back places that no call uses, and takes back what nobody asks any more. `waits`: whether a call of the session waits.
  void settle(const std::function<bool(std::uint64_t session)>& waits);

  // Waits at a gate.
  bool asks(std::uint64_t session) const;
  // Readable when one that asks may have been let in.
  void add_doorbells(std::vector<int>& descriptors) const;

 private:
  struct Gate {
    std::shared_ptr<wire::ShimPage> page;
    UniqueFd doorbell;
    bool runs = false;
    bool asks = false;
    bool whole = false;
  };

  static bool is_paced(const Gate& gate) { return (gate.page->pace.load() & wire::kPacePlaces) != 0; }
  static bool is_closed(const Gate& gate) { return (gate.page->gate.load() & wire::kGateNode) != 0; }
  static void give_back(Gate& gate);
  static void ask(Gate& gate, bool asks);

  std::map<std::uint64_t, Gate> gates_;
};

}  // namespace fairlead

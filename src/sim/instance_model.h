// How the instances of a virtual node behave, and what goes wrong between them, the device and the node.
//
//   node:  StartInstance ──> model.start(): ready after 9.0 s     Deliver ──> model.run(): answers after 2.2 s
//   test:  "exits after 1 s", "hangs", "reports an error"         mishaps: the report of a move is lost
//
// A model is asked once per start and once per run, in the order in which these begin; it may hold state and seeded
// randomness.
#pragma once

#include <optional>

#include "decide/core/core.h"

namespace fairlead::sim {

class InstanceModel {
 public:
  enum class StartEnd { kReady, kExits, kHangs };
  struct Start {
    StartEnd end = StartEnd::kReady;
    Duration after{0};
    // In so many equal parts it takes its memory while it starts, the last when it is ready; 0: its first invocation
    // takes all of it.
    int allocations = 0;
  };
  enum class RunEnd { kAnswers, kReportsError, kExits, kHangs };
  struct Run {
    RunEnd end = RunEnd::kAnswers;
    Duration after{0};                                   // as long as nothing runs beside it
    std::optional<Duration> gpu_time;                    // as measured; empty: not measured
    Duration work_after{0};                              // from the answer to the end of its work on the device
    std::optional<Duration> return_after = Duration(0);  // from the answer to the next question; empty: it never asks
  };

  virtual ~InstanceModel() = default;
  virtual Start start(const StartInstance& action) = 0;
  // When it begins: it was delivered, and its memory is on the device. `run`, as it stands, answers at once.
  virtual void run(FlowId flow, InvocationId invocation, Run& run) = 0;
  // Before its answer is told: what was measured of it may be put in.
  virtual void ends(FlowId, InvocationId, Run&) {}
  // Whether one that has answered may ask for the next within the same event, where nothing else is due: cheaper, and
  // nobody can look at the node in between.
  virtual bool returns_at_once() { return false; }

  // Device memory of one instance; empty: it has no shim, says nothing of memory and its memory is not modelled.
  virtual std::optional<Bytes> memory(FlowId) { return std::nullopt; }
  // How a start asks for room. kWaits: as an allocation that waits in the driver, for all of its bytes, and takes what is
  // granted before anything else is carried out. kRepeats: for the bytes that are missing, takes them after all that was
  // decided together with the grant, and gives up when it has asked three times in vain.
  enum class RoomRequest { kWaits, kRepeats };
  virtual RoomRequest room_request() { return RoomRequest::kWaits; }
  // A thread that waits so long at the gate for memory that nobody brings back says so; empty: it waits in silence.
  virtual std::optional<Duration> gate_asks_after() { return std::chrono::milliseconds(100); }
};

// What goes wrong. As it stands here: nothing.
class Mishaps {
 public:
  enum class Report { kMemory, kMoved };
  struct MoveEnd {
    bool moves = true;  // false: nothing has moved
    MoveOutcome outcome = MoveOutcome::kDone;
  };

  virtual ~Mishaps() = default;
  virtual bool never_returns() { return false; }       // after an answer
  virtual bool refuses_allocation() { return false; }  // though the device has room
  // How long a move takes that takes `link_time` by the device; empty: it is refused at once.
  virtual std::optional<Duration> move_time(MoveDirection, Duration link_time) { return link_time; }
  virtual MoveEnd move_end(MoveDirection) { return {}; }
  virtual bool loses(Report) { return false; }  // the core is never told
  virtual bool tells_again() { return false; }  // what it was told just now
};

}  // namespace fairlead::sim

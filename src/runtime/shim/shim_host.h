// The node's end of all shims: the processes of every instance that use a GPU, what device memory they hold, orders to
// move it and their answers, host memory to move it to. No decisions about residency here; they are the core's.
//
//   instance ──1 socket──> its processes (forks), each with a page of accounting, an arena for staging, a pidfd
//
// What a process says is checked (wire/shim_codec.h) and what it claims is bounded by what it could really do: a hostile
// function can lie about itself, and be slow itself. It cannot see or spend what is another's.
//
// Threads: everything on the io_context's thread. Callbacks run on it, never from inside a call of this class.
#pragma once

#include <boost/asio/io_context.hpp>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/ids.h"
#include "base/result.h"
#include "base/units.h"
#include "runtime/instance_host.h"
#include "runtime/shim/move_join.h"
#include "runtime/shim/process_mover.h"
#include "runtime/shim/staging_arenas.h"
#include "wire/shim_frames.h"
#include "wire/shim_page.h"

namespace fairlead {

struct ShimHostOptions {
  std::string library;     // libfairlead-shim.so, on the host
  std::string socket_dir;  // exists; one socket per instance is made in it
  wire::MemoryBackend backend = wire::MemoryBackend::kVmm;
  wire::UvmMode uvm = wire::UvmMode::kPrefetchSwap;
  Bytes host_memory{0};  // for staging, on the whole node; 0: none, contents go to memory of the functions
  Background background;

  // With kCheckpoint: who moves processes, and where its calls run, which block; those of one GPU in order.
  std::shared_ptr<const ProcessMover> mover;
  std::function<void(GpuId, std::function<void()> job, std::function<void()> done)> run_move;
};

struct ShimEvents {
  std::function<void(InstanceId, const SwapOutcome&)> moved;
  // Answered by grant_room() with the same request; it waits as long.
  std::function<void(InstanceId, std::uint64_t request, Bytes)> needs_room;
  std::function<void(InstanceId)> wants_memory;   // a thread waits at the gate
  std::function<void(InstanceId)> usage_changed;  // a process came or ended
  // A process has registered, and has not seen its page yet; it has lost its connection, or is dead. The number is the node's, and never
  // used again. May be empty.
  std::function<void(InstanceId, std::uint64_t process, std::shared_ptr<wire::ShimPage> page)> process_came;
  std::function<void(std::uint64_t process)> process_left;
};

// What the shims of an instance's processes have counted since it started. Never falls. As the processes say: a hostile
// one can count what it likes.
struct ShimCalls {
  std::uint64_t launches = 0;
  std::uint64_t gate_waits = 0;          // launches that found the gate closed
  std::uint64_t passed_through = 0;      // calls left to the driver because something was in doubt
  std::uint64_t unhooked_functions = 0;  // entry points handed out that no hook is known for
};

// What an instance's processes hold together. Never more than the device has.
struct ShimUse {
  Bytes held{0};         // allocated and not freed, wherever it is
  Bytes resident{0};     // on the device
  Bytes away{0};         // in host memory
  Bytes fixed{0};        // part of `resident` that cannot move
  Duration gpu_time{0};  // since the instance started; never falls
  std::size_t busy = 0;  // processes whose work on the device has not ended
  ShimCalls calls;
  std::size_t processes = 0;
};

// What is special about an instance.
struct ShimTerms {
  InstanceId instance;
  GpuId gpu;
  std::string function;    // for the log
  Bytes cap{0};            // device memory it may hold; 0: none
  Bytes device_memory{0};  // of its GPU; bounds what it can claim
};

class ShimHost {
 public:
  static std::unique_ptr<ShimHost> create(boost::asio::io_context& io, ShimHostOptions options, ShimEvents events);
  virtual ~ShimHost() = default;

  // Call before the instance starts. Gives what its sandbox needs.
  virtual Result<ShimAccess> add(ShimTerms terms) = 0;
  // The instance is gone, all its processes are dead: nothing about it is reported any more, its staging is free.
  virtual void remove(InstanceId instance) = 0;

  // Moves. `moved` follows, once for each, in order, unless the instance is removed first. `bytes`: at least so much, if
  // there is that much; kEverything: all. `deadline`: for its work to end.
  static constexpr std::uint64_t kEverything = MoveJoin::kEverything;
  virtual void swap_out(InstanceId instance, std::uint64_t bytes, Duration deadline) = 0;
  virtual void swap_in(InstanceId instance) = 0;
  // Unknown requests (their process has ended) have no effect.
  virtual void grant_room(InstanceId instance, std::uint64_t request, bool granted) = 0;

  // Reads the pages, and deals the cap out anew. Empty: no process of it has used a GPU yet.
  virtual std::optional<ShimUse> measure(InstanceId instance) = 0;
  virtual const StagingBudget& staging() const = 0;
};

}  // namespace fairlead

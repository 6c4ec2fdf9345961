// Device memory between the core and the runners: reports go one way, orders to move memory the other. What runs may grow
// between two answers, so that it is looked at every monitor period while anything does; and before the core decides about
// room, which rests on what it believes to be on the device: what starts side by side fills the device within milliseconds,
// long before the next look.
//
// Example: two instances start on 16 GB and allocate 9 GB each. The second finds the device full and asks for room; the desk
// first reports the first one's 9 GB, and the core takes them from the idle third's memory instead of refusing.
//
// Threads: everything on the io_context's thread.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <functional>
#include <optional>

#include "edge/node_service.h"
#include "node/core_driver.h"
#include "node/functions.h"
#include "node/instances.h"

namespace fairlead {

class MemoryDesk {
 public:
  struct Options {
    Duration move_deadline;  // of an order; a quarter of it for the process's own work to end, the rest for copying
    Duration period;         // between two looks
    std::function<bool()> runs_anything;
    // As ModelHost::evict(); empty: there are none.
    std::function<void(GpuId, Bytes, std::function<void(Bytes)> done)> drop_unused_models = {};
  };
  MemoryDesk(boost::asio::io_context& io, Options options, CoreDriver& driver, Instances& instances,
             Functions& functions);

  // Of the runners.
  MemoryEvents events();
  void on_moved(InstanceId instance, const MemoryMoved& move);
  void on_needs_room(InstanceId instance, std::uint64_t request, Bytes bytes);

  // What the core knows next, and the use that it was read from; empty: the instance has never used a GPU.
  std::optional<DeviceUse> report(InstanceId instance, Actions& out);
  void watch();

  void act(const SwapOutMemory& action);
  void act(const SwapInMemory& action);
  void act(const GrantRoom& action);

  const MoveTimes& moves() const { return moves_; }

 private:
  void ask_core_for_room(InstanceId instance, std::uint64_t request, Bytes bytes);
  void report_grown(Actions& out);
  void count_launches(LiveInstance& instance, const LaunchCounts& launches);

  const Options options_;
  CoreDriver& driver_;
  Instances& instances_;
  Functions& functions_;
  boost::asio::steady_timer timer_;
  bool watching_ = false;
  Instant looked_{};  // at all instances
  MoveTimes moves_;
};

}  // namespace fairlead

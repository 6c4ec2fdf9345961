// Scales functions with an objective (tag gpu:autoscale): from the profile of this code and device model a size, from the load a number of
// instances, each in a seat that admission found on some device.
//
//   every 100 ms, and when a call finds no seat ──> view of the function ──> Scaler (decide/scaling) ──steps──> seats ──> core
//                                                                                         └──> notes: what it saw, did and rejected
//
// An instance that leaves its seat parks (FlowSpec::parks): it is there without a slot or a share, and its memory leaves when somebody needs the
// room. Who is parked takes a seat before another starts, at once where a call waits. Those that were needed stay parked for 30 times what a
// start costs. Spares start ahead of need: where the rate rises, as many as it needs by the time that a start has ended, and so many that the
// usual rate may grow `ahead` times. Each keeps a context on its device, so spares are bounded, and come one at a time (spare_starts.h).
// Beyond its seats a function runs in slots, in its turn, as any other: that bridges a start.
//
// Example. An objective of 69 ms, 24 % x 95 %, 68 requests per second each. 200 per second come: four seats. The calls end: three park, one stays.
// 200 come again: three are unparked, and none starts. After `keep` without a call all go.
//
// Where no device has room for a seat that is needed, at most two seats whose instances are idle go to another device (decide/packing/room_plan.h),
// at most every 5 s: the instance parks where it is, and another starts, or is unparked, where its seat is now.
//
// A device that nobody needs is emptied: where all of its seats are of idle instances that may move, have been idle for `settled`, and find room on
// devices in use, at the price of a start each, they go there, at most every minute. The new seat comes first. The old one goes once an instance is
// ready in the new one, and the new one goes where none is within `moves_take`. The old instance parks, and stops as any that is too many.
//
// Where no seat can be used, none is held: without a profile all are given back, and those whose instances do not start (start_backoff.h).
//
// Threads: everything on the io_context's thread.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "decide/packing/room_plan.h"
#include "decide/scaling/placement_log.h"
#include "decide/scaling/scaler.h"
#include "decide/scaling/scaling_ledger.h"
#include "decide/scaling/start_backoff.h"
#include "edge/scaling_service.h"
#include "model/autoscale_tag.h"
#include "node/function_control.h"
#include "node/functions.h"
#include "node/spare_starts.h"

namespace fairlead {

class Autoscaler {
 public:
  struct Options {
    bool has_widths = false;                   // the node runs MPS
    Duration keep = std::chrono::minutes(10);  // nothing is called for as long: no seat stays
    double ahead = 0;                          // spares for as many times the usual rate; 0: none starts ahead of need
    std::size_t pool = 32;                     // instances of a device: spares leave room in it
    Duration settled = std::chrono::seconds(30);        // idle for as long: a seat may move to empty a device
    Duration empties_every = std::chrono::seconds(60);  // how often a device is looked for that can be emptied
    Duration moves_take = std::chrono::seconds(60);     // to start an instance where a seat is to be
  };
  // Of this function's code, on a device that the node has; null: nothing was measured. Valid until anything is measured.
  using ProfileOf = std::function<const FunctionProfile*(const FunctionRecord&)>;
  using DeviceMemory = std::function<Bytes()>;  // of the node's devices, the least; 0: there is none

  Autoscaler(boost::asio::io_context& io, CoreDriver& driver, FunctionControl& control, Functions& functions,
             ProfileOf profile_of, DeviceMemory device_memory);

  // Asked at each tick of a function that wants to be scaled and was not measured: it may begin to measure. Gives what is to be said of it;
  // "": nobody measures it.
  using Measure = std::function<std::string(const FunctionRecord&)>;
  void set_measure(Measure measure) { measure_ = std::move(measure); }

  void start(Options options);
  // A call of it was accepted: where no seat is there, or it waits, the scaler decides at once.
  void called(const std::string& function);
  // Its profile is another.
  void profiled(const std::string& function);
  void forget(const std::string& function);
  // `late`: later than its objective, or without an answer. Both `_ms`: since 1970. arrived() is false, and answered() has no effect, where
  // it is not scaled.
  bool arrived(const std::string& function, std::int64_t now_ms);
  void answered(const std::string& function, std::int64_t arrived_ms, Duration took, bool failed);

  // kInvalidArgument: it is not scaled.
  Result<ScalingStatus> status(const std::string& function);
  std::vector<ScalingStatus> all();
  std::vector<PlacementEntry> placements() const { return placed_.log.entries(); }

  static constexpr std::size_t kMostNotes = 64;       // of one function
  static constexpr std::size_t kMostAllNotes = 4096;  // of all

 private:
  struct Scaled {
    std::string revision;  // of the record that it was made for
    Autoscale wanted = Autoscale::kOn;
    std::string lacking;
    std::unique_ptr<Scaler> scaler;  // null: best effort
    InstanceSize size;
    FunctionTerms terms;
    std::uint64_t arrived = 0;  // in all, at the last decision
    bool is_due = false;        // a decision is on its way
    Instant waited_at{};        // the last one because a call waited
    StartBackoff backoff;
    std::string refused;   // why there was no room for a seat, when it was last asked for
    Instant refused_at{};  // REQUIRES: refused is not ""
    Instant spare_at{};    // the last time that one was to start
    std::deque<ScalingNote> notes;
    ScalingLedger ledger;

    Share share() const;  // of each of its instances
    // More seats than can be had are not asked for: starts fail, or there was no room a moment ago.
    void bound(Shares::Wanted& asked, std::vector<std::string>& rejected, Instant now) const;
  };
  // What decisions need of the core: taken once for all functions of a tick.
  struct Sight {
    Instant now;
    std::vector<GpuId> serving;
    std::vector<GpuId> with_room;  // of those: for a spare in the pool
    std::map<FlowId, std::vector<InstanceView>> by_flow;
    const std::vector<InstanceView>& instances(FlowId flow) const;
  };

  void tick();
  void arm();
  Sight sight() const;
  void look_at(const std::string& name, const Sight& sight, bool is_event);
  void refresh(const RegisteredFunction& function, Scaled& scaled);
  void look_at_devices(const Sight& sight);
  void leave_lost_devices(const std::string& name, Scaled& scaled, const Sight& sight);
  void give_back(const std::string& name, Scaled& scaled, ShareBook::Seats kept, const std::string& why);
  ScalerView view_of(const RegisteredFunction& function, const Scaled& scaled, const Sight& sight) const;
  void carry_out(const RegisteredFunction& function, Scaled& scaled, ScalingDecision decision, const ScalerView& view,
                 const Sight& sight);
  SpareRoom spare_room(const Scaled& asks, const ScalerView& view, const Sight& sight) const;
  std::vector<GpuId> make_room(const RegisteredFunction& function, Scaled& scaled, const Sight& sight,
                               ScalingNote& made);
  bool move_seat(const SeatMove& move, const std::string& why);
  // Who sits where, and may move: those of scaled functions but `but` whose instances have been idle for `idle_for`.
  std::vector<SeatTaken> seats_taken(const Sight& sight, const std::string& but, Duration idle_for) const;
  void empty_a_device(Instant now);
  // Moves that empty a device: what has become of the new seats.
  void finish_moves(const Sight& sight);
  void note(Scaled& scaled, ScalingNote note) const;
  void write_books(const std::string& name, Scaled& scaled, const Sight& sight);
  ScalingStatus status_of(const std::string& name, const Scaled& scaled, const Sight& sight) const;

  boost::asio::io_context& io_;
  CoreDriver& driver_;
  FunctionControl& control_;
  Functions& functions_;
  const ProfileOf profile_of_;
  const DeviceMemory device_memory_;
  Measure measure_;
  Options options_;
  boost::asio::steady_timer timer_;
  bool is_started_ = false;
  std::vector<GpuId> served_;  // at the last tick
  std::map<std::string, Scaled> scaled_;
  struct Placed {
    PlacementLog log;
    Instant moved_at{};    // the last time that seats were moved to make room
    Instant emptied_at{};  // the last time that a device was looked for that can be emptied
    struct Moving {
      SeatMove move;
      Instant began;
    };
    std::vector<Moving> moving;  // to empty a device
  };
  Placed placed_;
};

}  // namespace fairlead

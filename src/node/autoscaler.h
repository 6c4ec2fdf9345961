// Scales functions with an objective (tag gpu:autoscale): from the profile of this code and device model a size, from the load a number of
// instances, each in a seat that admission found on some device.
//
//   every 100 ms, and when a call finds no seat ──> view of the function ──> Scaler (decide/scaling) ──steps──> seats ──> core
//                                                                                         └──> notes: what it saw, did and rejected
//
// What differs from the laboratory: an instance that leaves its seat is stopped, not parked, so that what parks there stops here, and what is
// started to be parked is not started. Beyond its seats a function runs in slots, in its turn, as any other: that bridges a start.
//
// Example. An objective of 69 ms, 24 % x 95 %, 68 requests per second each. 200 per second come: four seats. The calls end: the seats go one by
// one, and after `keep` the last.
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

#include "decide/scaling/scaler.h"
#include "edge/scaling_service.h"
#include "model/autoscale_tag.h"
#include "node/function_control.h"
#include "node/functions.h"

namespace fairlead {

class Autoscaler {
 public:
  struct Options {
    bool has_widths = false;                   // the node runs MPS
    Duration keep = std::chrono::minutes(10);  // nothing is called for as long: no seat stays
  };
  // Of this function's code, on a device that the node has; null: nothing was measured. Valid until anything is measured.
  using ProfileOf = std::function<const FunctionProfile*(const FunctionRecord&)>;
  using DeviceMemory = std::function<Bytes()>;  // of the node's devices, the least; 0: there is none

  Autoscaler(boost::asio::io_context& io, CoreDriver& driver, FunctionControl& control, Functions& functions,
             ProfileOf profile_of, DeviceMemory device_memory);

  void start(Options options);
  // A call of it was accepted: where nothing is there, the scaler decides at once.
  void called(const std::string& function);
  // Its profile is another.
  void profiled(const std::string& function);
  void forget(const std::string& function) { scaled_.erase(function); }

  // kInvalidArgument: it is not scaled.
  Result<ScalingStatus> status(const std::string& function);
  std::vector<ScalingStatus> all();

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
    std::deque<ScalingNote> notes;
  };

  void tick();
  void arm();
  void look_at(const std::string& name);
  void refresh(const RegisteredFunction& function, Scaled& scaled);
  std::vector<GpuId> serving() const;
  void leave_lost_devices(const std::string& name, Scaled& scaled);
  ScalerView view_of(const RegisteredFunction& function, Scaled& scaled) const;
  void carry_out(const std::string& name, Scaled& scaled, ScalingDecision decision);
  void note(Scaled& scaled, ScalingNote note) const;
  Share share_of(const Scaled& scaled) const;
  ScalingStatus status_of(const std::string& name, const Scaled& scaled, bool with_notes) const;

  boost::asio::io_context& io_;
  CoreDriver& driver_;
  FunctionControl& control_;
  Functions& functions_;
  const ProfileOf profile_of_;
  const DeviceMemory device_memory_;
  Options options_;
  boost::asio::steady_timer timer_;
  bool is_started_ = false;
  std::map<std::string, Scaled> scaled_;
};

}  // namespace fairlead

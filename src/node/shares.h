// Which functions have seats on the node's devices: what each function's author asks for, whether the node can keep that, and where.
//
//   create, change ──admit──> ShareBook ──seats──> FunctionRecord::seats (on disk), FlowSpec::seats (the core)
//   a device appears or goes, seats are given back ──settle──> whoever has too few seats is tried again
//
// A published version of which instances are kept is one that asks, under the name "f:3" (flow_name()).
//
// Who asks for more than there is, is refused, and keeps what it had. A function that was admitted once and has too few seats
// now (the node was started again with fewer devices, or in another mode) is best effort beyond them, and the status says so.
//
// Threads: the io_context's.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "decide/core/core.h"
#include "decide/pacing/share_book.h"
#include "decide/sharing/sharing_mode.h"
#include "edge/node_service.h"
#include "model/function.h"

namespace fairlead {

class Shares {
 public:
  struct Options {
    SharingMode mode = SharingMode::kNone;
    std::string policy;            // its name, for errors
    bool keeps_instances = true;   // the policy does
    bool has_task_widths = false;  // sessions of kernel tasks may run beside each other, whosever they are
    double reserve_percent = 3;    // DeviceRoom
    std::size_t pool = 0;          // instances of a device (--pool); a device that is paced has kMostPlaces at most
  };
  // What a function asks for.
  struct Asked {
    Share share;
    Replicas replicas;
    std::size_t seats = 0;
    double weight = 1;
    bool is_kernel_task = false;
    std::string mig_profile = {};  // slices that it may run on; "": any device
    bool is_scaled = false;        // the node finds share and seats (scale()), not the author
    bool operator==(const Asked&) const = default;
  };
  // Of a function that the node scales: seats that it keeps, where it can have them, and how many more, on devices that serve.
  struct Wanted {
    ShareBook::Seats kept;
    std::size_t more = 0;
    std::vector<GpuId> serving;
    std::vector<GpuId> first =
        {};  // where of them it would be best, one for each entry: its parked instances are there
  };
  // What became of seats that were asked for.
  struct Placed {
    std::vector<GpuId> added;
    std::string lacking;  // why there are no more; "": none is missing
  };
  struct Entry {
    Asked asked;
    ShareBook::Seats seats;
    std::vector<std::string> last;  // FunctionRecord::seats
    std::string lacking;            // ShareStatus::lacking
  };

  // Before the first device.
  void configure(Options options) { options_ = std::move(options); }
  // `instances`: of the core, on each device; `slots`: D, at most.
  void add_device(const Device& device, std::size_t instances, std::size_t slots);
  // Other slots, of devices. kInvalidArgument: they and the seats are more than `instances` on one; all is as before.
  Status set_slots(const std::map<GpuId, std::size_t>& slots, std::size_t instances);
  bool remove_device(GpuId gpu);  // false: it was not there

  // A function that was admitted before: settle() finds its seats. REQUIRES: its configuration was validated.
  void recover(const FunctionRecord& record, bool is_kernel_task);
  // It asks for this from now on, though there may be no room: it keeps the seats that it has, and settle() finds the others.
  void ask(const FunctionRecord& record, bool is_kernel_task);
  // It is to be so from now on; its seats are held, and in the record. kInvalidArgument: the node cannot keep that; the message says what
  // is lacking and what to do, and all is as before. A function that asks for what it asked before is never refused.
  Status admit(FunctionRecord& record, bool is_kernel_task);
  // As it was before an admit() that came to nothing, less seats whose devices went, or were given to others meanwhile: settle() afterwards.
  std::optional<Entry> entry(const std::string& function) const;
  void restore(const std::string& function, const std::optional<Entry>& entry);
  void release(const std::string& function);
  // Its instances have this share from now on, and as many of the seats as there is room for. REQUIRES: it is known, and scaled.
  Placed scale(const std::string& function, const Share& share, const Wanted& wanted);

  // Finds seats for those who have too few: first each gets those of before whose devices are there, though they be too few. Gives the names of those whose seats are others now.
  std::vector<std::string> settle();

  void describe(const std::string& function, FlowSpec& spec) const;
  // Of what has no seats, and is none of the functions that are known here.
  void describe_seatless(const Share& share, bool is_kernel_task, FlowSpec& spec) const;
  ShareStatus status(const std::string& function, FlowId flow) const;

  // Who measures what the pacers deliver, and fills it in; none: it stays empty.
  using Measure = std::function<void(FlowId, ShareStatus&)>;
  void set_measure(Measure measure) { measure_ = std::move(measure); }
  // Of an instance, as admission counted it: what a pacer is told, and what it is held to.
  PacedShare paced(const std::string& function, FlowId flow, bool entitled) const;
  // Of one of what has no seats: it is as wide as describe_seatless() has it charged for, and promised nothing.
  PacedShare paced_seatless(const Share& share, bool is_kernel_task, FlowId flow) const;
  bool knows(const std::string& function) const { return entries_.contains(function); }

 private:
  Status check_kept(const Asked& asked) const;
  Status check_profile(const Asked& asked) const;
  SeatsAsked seats_asked(const Entry& entry) const;
  Widths widths(const Asked& asked) const;
  bool keep(const std::string& function, Entry& entry);
  bool settle(const std::string& function, Entry& entry);

  Options options_;
  ShareBook book_;
  std::map<GpuId, std::string> uuids_;
  std::map<GpuId, std::string> profiles_;  // of slices; "" of whole GPUs
  std::map<std::string, Entry> entries_;   // of all functions
  Measure measure_;
};

}  // namespace fairlead

// The pacer with real processes at its other end: what their pages say becomes events, what the pacer decides becomes orders for the
// pages. Between the pacer (one place for an instance) and the gates (one for each of its processes).
//
//   page says              means                                            told to the pacer
//   asks                   a thread waits at the gate                       asks
//   drained = our grant    nothing of its place is in flight                used; drained, or idle where nothing asks
//   gate open, not by us   it goes round its gate                           (named; in the end its request is gone)
//
//   pacer says             orders
//   open until t           processes that ask get a grant with a new number; those that have one, a later end: no wake
//   (place over), close    every gate of the instance is closed
//
// Example. A asks at 0: granted 1 until 2 ms. At 1 ms B asks, at 2 ms the frame is over and B is next: A is closed, says "drained 1"
// at 2.3 ms with 2.2 ms of GPU time, B is granted.
//
// An instance of several processes has its place while any of them has; a process that asks later is let in for the rest of it. What
// they report adds up.
//
// A page is written by a stranger. Everything it says is bounded here or by the pacer: GPU time between a tenth and all of the time held,
// a drained place only by its number, a claim of GPU time by what the device says (claims). Who says "drained" and runs on is found by that.
//
// Time: handed in, does not go back. Threads: not thread-safe; one per device. Pure.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "decide/pacing/claim_check.h"
#include "decide/pacing/pacer.h"
#include "decide/pacing/service_meter.h"

namespace fairlead {

using ProcessPage = std::uint64_t;  // one process's page, as the caller numbers them; never used again

// What a page says.
struct PageReading {
  bool asks = false;
  std::uint32_t drained = 0;  // number of the last grant that has drained
  bool is_open = false;       // the node's gate
  Duration gpu_time{0};       // since the process began
  bool has_left = false;      // it takes no notice of places any more: it has lost its connection
};

struct PageOrder {
  enum class Kind : std::uint8_t {
    kOpen,    // a new grant: its number, its end, the gate, and a wake
    kExtend,  // its end
    kClose,   // the gate
  };
  Kind kind = Kind::kOpen;
  ProcessPage page = 0;
  std::uint32_t grant = 0;
  Instant until;
  bool operator==(const PageOrder&) const = default;
};
using PageOrders = std::vector<PageOrder>;

// One instance's hold of the device, for a picture.
struct PlaceSpan {
  InstanceId instance;
  int width_percent = 0;
  Instant begin, until;
  Instant end;  // when it had drained, or was revoked
  bool is_revoked = false;
};

struct DeliveredService {
  InstanceId instance;
  PacedShare share;
  PlaceState state = PlaceState::kIdle;
  Duration last_second{0}, last_minute{0}, total{0};
  Duration credit{0};
  WaitHistogram waits;
  std::uint64_t revoked = 0;    // places that did not drain in time
  std::uint64_t own_gates = 0;  // times that a process had opened its gate itself
  bool is_disbelieved = false;  // its request is gone: it did not tell the truth
};

class LivePlaces {
 public:
  static constexpr std::size_t kSpans = 512;     // that are kept
  static constexpr std::uint64_t kOwnGates = 3;  // before an instance is disbelieved

  explicit LivePlaces(const PlaceOptions& options) : pacer_(options) {}

  // A new instance or other terms. Errors: PlaceScheduler::set_share.
  Status set_share(Instant now, InstanceId instance, const PacedShare& share);
  void remove_instance(Instant now, InstanceId instance);
  bool knows(InstanceId instance) const { return instances_.contains(instance); }
  // A page whose gate the caller has closed. Unknown instances: nothing happens.
  void add_page(InstanceId instance, ProcessPage page);
  void remove_page(Instant now, ProcessPage page);

  void observe(Instant now, ProcessPage page, const PageReading& reading);
  // After a round of observe(): what follows.
  void decide(Instant now);
  std::optional<Instant> next_tick() const { return pacer_.next_tick(); }

  // The device's account of the instance's processes, since they began. It is held against what their pages claim, and against the time
  // of their places: whoever goes round its gate used more than it held. Six seconds of that in a row, and it is to be stopped
  // (Finding::is_over); later instances of its flow have two. Nothing is said of one whose place was revoked until it has drained: what it
  // runs was let in, and it is charged all of the time.
  void device_says(Instant now, InstanceId instance, Duration used);

  // To be carried out, in order; gone afterwards.
  PageOrders take_orders() { return std::exchange(orders_, {}); }
  // What is to be told of instances that do not keep to the rules, a line each.
  struct Finding {
    InstanceId instance;
    std::string text;
    bool is_over = false;  // it goes on without places, and is to be stopped
  };
  std::vector<Finding> take_findings() { return std::exchange(findings_, {}); }

  std::vector<DeliveredService> delivered(Instant now);
  const std::deque<PlaceSpan>& spans() const { return spans_; }  // oldest first
  Duration frame_length() const { return pacer_.frame_length(); }

 private:
  struct Page {
    std::uint32_t grant = 0;  // the last
    bool is_open = false;     // as far as we know
    bool asks = false;
    bool drained = true;
    Duration gpu_time{0};
  };
  struct Instance {
    PacedShare share;
    std::map<ProcessPage, Page> pages;
    Duration unreported{0};          // GPU time that pages have told and the pacer has not
    Duration claimed{0};             // GPU time that pages have told, since the beginning
    Duration claimed_before{0};      // the last place
    std::optional<Instant> asked;    // without an answer yet
    std::optional<PlaceSpan> place;  // that is held, or drains
    Duration served{0};              // in places before
    Duration held{0};                // of the device, in places before
    ServiceMeter meter;
    WaitHistogram waits;
    ClaimCheck claim_check, place_check;
    std::uint64_t revoked = 0, own_gates = 0;
    bool is_disbelieved = false;
    bool is_doubted = false;  // it was revoked, and has not drained since
  };

  void tell(Instant now, InstanceId id, Instance& instance);
  void act(Instant now);
  void open(Instant now, Instance& instance, Instant until);
  void close(Instance& instance);
  void close_what_is_over();
  void end_place(Instant now, Instance& instance, Duration told);
  static Duration service(Instant now, const Instance& instance);
  void disbelieve(Instant now, InstanceId id, Instance& instance);
  static std::string evasion(const Instance& instance, ClaimCheck::Verdict by_claim, Duration used);

  Pacer pacer_;
  std::map<InstanceId, Instance> instances_;
  std::map<ProcessPage, InstanceId> owners_;
  std::set<FlowId> evaders_;  // flows of which an instance was found out
  PlaceActions actions_;
  PageOrders orders_;
  std::vector<Finding> findings_;
  std::deque<PlaceSpan> spans_;
};

}  // namespace fairlead

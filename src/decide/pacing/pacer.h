// Our scheduler of places: common frames, chosen as a whole.
//
// Idea. Kernels cannot be taken back, so a place that ends drains for as long as its last kernel takes. Tokens that end each at a time of
// its own leave room in small pieces, and a wide instance never finds its width free at once. So all places of a device end together:
//
//   frame ──────── 2 ms ────────┐boundary                                    the whole next set is chosen at the boundary:
//   A 50 ████████████████████████▓▓ drains                                   1. who has credit: the set that weighs most (frame_choice.h)
//   B 30 ███████████████████████████████████████ stays, no wake              2. others, the flow with the least virtual time first
//   C 50                        ·· reserved ████ opens when A has drained    3. later, in room that 1 and 2 leave: backfill
//
// The chosen have their room reserved while others drain: the widths of chosen and open never exceed 100 %, so that nothing that is let in
// meanwhile can keep a chosen one out. An instance that drains beyond a boundary counts as room that is not there.
//
// Who comes back. An instance that answers one request after another has nothing for the device between two, for some hundred microseconds.
// Its room would go to somebody for the rest of the frame, and each of its requests would wait for a frame. So if one with credit last
// came back within kReturns, its room is kept for twice as long as it was away, from those who have no credit; it is idle meanwhile.
// Example: a request of 11 ms every 11.3 ms beside frames of 10 ms: 11.3 ms each, and not 20. It did not come: 0.6 ms of its width are lost,
// once, since it has to come back quickly first. (Anticipatory scheduling: Iyer and Druschel 2001, of disks.)
//
// A flow too wide for what others leave goes first once they are T ahead of it, or it has waited for `patience`, unless somebody with credit
// could then be late (is_pressing).
//
// Virtual time is charged GPU time x width / weight, less what credit paid for, when an instance tells. Processes tell when their place has
// drained, and one whose place goes on frame after frame has nothing to tell. So for the order at a boundary what a flow holds untold
// counts, too, beyond T: it goes on while it is at most T ahead of who waits. A flow that has all that its width can take saves nothing
// up: its virtual time stays within T of those that wait. One that returns joins at the clock, the least virtual time of those with work.
//
// Example. A (width 50, request 60 %) and B (width 100, best effort) always have work. A earns 1.2 ms in a frame of 2 ms and spends 2: of
// five frames A has three for credit. In the two others the least virtual time decides, and A has none of these before B had as much.
//
// Bounds, with proofs and what they assume: docs/explanation/pacer.md. Cost: 5 to 8 us a boundary with 48 instances (pacer_bench).
#pragma once

#include <map>

#include "decide/pacing/frame_choice.h"
#include "decide/pacing/place_account.h"
#include "decide/pacing/place_table.h"

namespace fairlead {

class Pacer final : public PlaceScheduler {
 public:
  explicit Pacer(const PlaceOptions& options) : options_(options), frame_(options) {}

  Status set_share(Instant now, InstanceId instance, const PacedShare& share, PlaceActions& actions) override;
  void asks(Instant now, InstanceId instance, std::optional<Instant> due, PlaceActions& actions) override;
  void idle(Instant now, InstanceId instance, PlaceActions& actions) override;
  void used(Instant now, InstanceId instance, Duration gpu_time) override;
  void drained(Instant now, InstanceId instance, PlaceActions& actions) override;
  void gone(Instant now, InstanceId instance, PlaceActions& actions) override;
  void tick(Instant now, PlaceActions& actions) override;
  std::optional<Instant> next_tick() const override;

  std::optional<PlaceState> state_of(InstanceId instance) const override;
  int width_held() const override { return places_.held(); }
  int width_reserved() const;  // of the chosen and the open

  // Of a known instance, for the node's status and for tests.
  struct View {
    Duration credit{0};
    Duration entitled{0};        // service that was granted for credit
    std::int64_t flow_time = 0;  // virtual time of its flow: nanoseconds x per cent of the SMs / weight
  };
  std::optional<View> view(Instant now, InstanceId instance);
  Duration frame_length() const { return frame_.length(); }
  // Who was away longer is not expected back.
  static constexpr Duration kReturns = std::chrono::milliseconds(1);

 private:
  struct Flow {
    std::int64_t time = 0;
    std::int64_t untold = 0;  // at this boundary: what its places were held for and have not told of, as virtual time
    int contenders = 0;       // places with work
    int places = 0;
  };
  struct Paced : Place {
    PlaceAccount account;
    Flow* flow = nullptr;
    bool contends = false;
    Grant grant = Grant::kExtra;            // what the chosen will hold the place for
    bool rested = true;                     // it was idle since it asked last
    Duration least_credit{0};               // since its present work came; at least 0
    Instant left;                           // when it was idle last
    Duration away = Duration::max();        // before it came back last
    std::optional<Instant> expected_until;  // its room is kept from those who have no credit
  };
  // A frame's choice, by place.
  struct Set {
    std::uint64_t chosen = 0;
    std::uint64_t entitled = 0;  // of the chosen
  };

  void join(Paced& place, FlowId flow);
  void leave(Paced& place);
  void contend(Paced& place, bool contends);
  void settle(Instant now, Paced& place, Duration reported);
  void release(Instant now, Paced& place, PlaceEvent event);
  void expect(Instant now, Paced& place);
  void end_expectation(Instant now, Paced& place);
  int width_expected(Instant now) const;

  void open(Instant now, Paced& place, Grant grant, PlaceActions& actions);
  void go_on(Instant now, PlaceActions& actions);
  void backfill(Instant now, PlaceActions& actions);
  void judge_late(Instant now, PlaceActions& actions);

  void begin_frame(Instant now, PlaceActions& actions);
  Set choose(Instant now);
  void count_untold(Instant now);
  std::int64_t turn_of(const Flow& flow) const;
  bool has_claim(Instant now, Paced& place) const;
  std::int64_t weight_of(Instant now, Paced& place) const;
  bool is_pressing(Instant now, Paced& place) const;
  bool may_go_first(Instant now, const Paced& place, std::int64_t most_served) const;
  void move_clock(const Set& set);

  const PlaceOptions options_;
  FrameLength frame_;
  PlaceTable<Paced> places_;
  std::map<FlowId, Flow> flows_;
  std::int64_t clock_ = 0;            // virtual time that those who return join at
  std::optional<Instant> frame_end_;  // none: nobody asks, is open or drains
};

}  // namespace fairlead

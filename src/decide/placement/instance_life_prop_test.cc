// What instances do under events in any order: against a flag for each fact, and the pool's books against what each instance does.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <vector>

#include "decide/placement/instance_life.h"
#include "decide/placement/instance_pool.h"

namespace fairlead {
namespace {

using enum InstanceEvent;
using Phase = InstanceLife::Phase;

// Nothing here knows which of them go together.
struct Flags {
  bool ready = false, bound = false, delivered = false, answered = false, asked = false;
  bool loads = false, retires = false, was_bound = false, prepares = false, returns = false;

  void happens(InstanceEvent event) {
    switch (event) {
      case kPrepares: prepares = true; break;
      case kReady: ready = true; break;
      case kReadyUnawaited: ready = was_bound = true; break;
      case kBoundToLoad: loads = true; [[fallthrough]];
      case kBound: bound = was_bound = true; break;
      case kDelivered: ready = delivered = true, returns = false; break;
      case kLoaded: loads = false; break;
      case kAnswered: answered = true; break;
      case kAsked: (bound ? asked : returns) = bound; break;
      case kEnded: bound = delivered = answered = asked = loads = false, ready = returns = true; break;
      case kRetired: retires = true; break;
    }
  }
  bool agree_with(const InstanceLife& life) const {
    return bound == life.holds_slot() && !ready == life.starts() && delivered == life.runs() &&
           answered == life.works() && asked == life.has_asked() && returns == life.returning() &&
           loads == life.loads() && retires == life.retires() && (ready && !was_bound) == life.unused() &&
           (!ready && !bound) == life.starts_ahead() && (ready && !bound) == life.spare() &&
           (prepares && !ready && !bound) == (life.phase() == Phase::kPreparing);
  }
};

RC_GTEST_PROP(InstanceLifeProperty, NoSequenceOfEventsLeavesTheLegalStates, ()) {
  InstanceLife life;
  Flags flags;
  for (int i = 0; i < 200; ++i) {
    const auto event = static_cast<InstanceEvent>(*rc::gen::inRange(0, kInstanceEvents));
    if (event == kRetired && *rc::gen::inRange(0, 20) != 0) continue;  // it ends no more after that
    const auto next = step(life, event);
    if (!next) continue;
    flags.happens(event);
    RC_ASSERT(next->is_legal());
    RC_ASSERT(flags.agree_with(*next));
    life = *next;
  }
}

// ---- the pool's books

constexpr GpuId kGpu{1};
constexpr std::size_t kInstances = 6;

class RandomPool {
 public:
  RandomPool() {
    pool_.add_gpu(kGpu, {.slots = 3, .clients = kInstances, .memory = Bytes(1000)});
    pool_.set_lanes(kGpu, 3);
    pool_.set_loads_at_once(kGpu, 2);
  }

  void do_something() {
    if (pool_.ids().size() < kInstances) add();
    const std::vector<InstanceId> ids = pool_.ids();
    Instance& instance = *pool_.find(ids[*rc::gen::inRange<std::size_t>(0, ids.size())]);
    const auto event = static_cast<InstanceEvent>(*rc::gen::inRange(0, kInstanceEvents));
    if (*rc::gen::inRange(0, 20) == 0) {
      pool_.remove(instance.id);
    } else if (step(instance.life, event)) {
      happens(instance, event);
    }
  }

  void check_books() const {
    std::size_t slots = 0, loads = 0, ahead = 0;
    Bytes in_use{0}, committed{0}, starting{0};
    for (const InstanceId id : pool_.ids()) {
      const Instance& instance = *pool_.find(id);
      RC_ASSERT(instance.life.holds_slot() == static_cast<bool>(instance.bound));
      slots += instance.life.holds_slot();
      loads += instance.life.loads();
      ahead += instance.starts_ahead();
      if (instance.starts_ahead()) starting += instance.memory;
      if (!instance.spare()) in_use += instance.memory;
      committed += instance.spare() ? instance.pinned : instance.memory;
    }
    const Gpu& gpu = pool_.gpu(kGpu);
    RC_ASSERT(gpu.slots_in_use == slots && pool_.slots_in_use() == slots);
    RC_ASSERT(gpu.loading == loads);
    RC_ASSERT(gpu.starting_ahead == ahead && pool_.starting_ahead() == ahead);
    RC_ASSERT(gpu.memory_in_use == in_use && gpu.memory_committed == committed && gpu.memory_starting == starting);
    RC_ASSERT(pool_.free_slots() == gpu.free_slots() && pool_.has_turn() == gpu.has_turn());
  }

 private:
  void add() {
    Instance& added = pool_.add(Instant(), FlowId(1 + next_ % 3), kGpu, Bytes(100), InvocationId());
    if (*rc::gen::arbitrary<bool>()) pool_.set_terms(added, {.is_session = true});
    added.reload = Duration(*rc::gen::inRange(0, 2));
  }

  void happens(Instance& instance, InstanceEvent event) {
    switch (event) {
      case kReady:
      case kReadyUnawaited:
        pool_.take(instance, event);
        return pool_.count_memory(instance, instance.memory, Bytes(40));
      case kBound:
      case kBoundToLoad:  // the pool knows which of them it is
        if (instance.on->takes(instance) && instance.spare()) pool_.bind(instance, InvocationId(++next_));
        return;
      case kEnded: return pool_.release(instance);
      default: return pool_.take(instance, event);
    }
  }

  InstancePool pool_;
  std::uint64_t next_ = 0;
};

RC_GTEST_PROP(InstanceLifeProperty, ThePoolCountsWhatItsInstancesDo, ()) {
  RandomPool pool;
  for (int i = 0; i < 200; ++i) {
    pool.do_something();
    pool.check_books();
  }
}

}  // namespace
}  // namespace fairlead

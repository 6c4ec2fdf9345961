// The live instances of a node and the slots of its GPUs: who exists, what each is doing, what each GPU has left. Keeps
// the books and their invariants; chooses nothing (placer.h does).
//
// What an instance does is instance_life.h's: the pool takes every step of it, and a step that means nothing aborts.
//
// An instance holds a slot of its GPU exactly while an invocation is bound to it: from dispatch, through a cold start,
// to the answer (D in the paper, section 4.2). One that starts ahead has nothing bound and holds none. So a GPU with D
// slots has at most D instances that hold one; all others but those that start may be evicted.
//
// Kernel tasks share a device server, so more of their calls may run at once than of programs: they take lanes instead of slots
// (task_lanes.h), as many as set_lanes() says. While a program runs on the GPU or waits for it, a call of a kernel task is like
// any other and takes a slot. So kernel tasks never keep a program out for longer than what runs takes to end.
//
// An instance in a seat (FlowSpec::seats) stays: nobody evicts it, and its memory counts as in use while it is idle, too. One that is
// entitled to a part of the device's time takes no slot: it was paid for when its function was admitted.
//
// An instance that is held (warm_hold.h) stays as well. On the device: its memory counts as that of a seat. On the host: only what cannot
// leave the device without it does. While it runs it counts as any other.
//
// Threads: not thread-safe. Determinism: ordered containers only where they are walked.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include "base/id_map.h"
#include "base/ids.h"
#include "base/units.h"
#include "decide/placement/instance_life.h"
#include "decide/placement/task_lanes.h"
#include "decide/placement/task_room.h"
#include "model/device.h"
#include "model/warm_hold.h"

namespace fairlead {

struct Gpu;

// What kind of instance it is; does not change while it exists.
struct InstanceTerms {
  bool is_session = false;   // of a kernel task: it takes a lane
  bool is_seated = false;    // it is kept
  bool is_entitled = false;  // and runs without a slot. REQUIRES: is_seated
  int request_percent =
      0;  // of its function when it started: what the tag says later is for instances that start later
  PinKind held = PinKind::kNone;  // while it runs nothing (warm_hold.h)
};

struct Instance {
  InstanceId id;
  FlowId flow;
  GpuId gpu;
  Gpu* on = nullptr;   // the same, with what it has left
  Bytes memory{0};     // device memory it is counted with while it holds a slot
  Bytes pinned{0};     // and while it holds none: what cannot leave the device without it
  Bytes needed{0};     // what it needs to run, as far as it has shown
  InvocationId bound;  // what it runs or will run; none: it holds no slot
  InstanceLife life;
  InstanceTerms terms;
  bool over_bound = false;  // it would be held, but all that are held would take too much
  Instant last_used;
  Instant idle_since;      // the end of its start or of its last run
  Duration start_took{0};  // from StartInstance to ready; 0 until then
  Duration idled{0};       // slots idled for so long because of the memory that its start has reserved
  Duration reload{0};      // what its next invocation brings back to the device first, as far as it is known

  bool starts_ahead() const { return life.starts_ahead(); }
  bool spare() const { return life.spare(); }
  bool may_go() const { return !terms.is_seated && terms.held == PinKind::kNone; }  // when it runs nothing
  bool may_be_evicted() const { return life.spare() && may_go(); }
  bool keeps_memory() const { return terms.is_seated || terms.held == PinKind::kDevice; }
  // Of its device memory, what nobody else can have though it runs nothing.
  Bytes kept_memory() const { return keeps_memory() ? memory : terms.held == PinKind::kHost ? pinned : Bytes(0); }
  bool returning() const { return life.returning(); }
};

// Memory of a GPU's seats, and of what is held there (Instance::kept_memory); what is in use counts the first, too.
struct SeatMemory {
  Bytes held{0};     // of instances that are there
  Bytes awaited{0};  // of those that are yet to start
};

struct Gpu {
  GpuId id;
  Capacity capacity;
  Bytes unreported{0};             // of it, taken by what no instance reports: contexts, other programs
  bool serves = true;              // false: no invocation is bound to an instance of it
  std::size_t slots_in_use = 0;    // above the capacity for a while after it was lowered; lanes and loads included
  std::size_t lanes = 0;           // of kernel tasks; 0: as many as slots
  std::size_t loads_at_once = 0;   // of them that load without holding a lane; 0: they hold one
  std::size_t loading = 0;         // of those in use
  std::size_t programs = 0;        // instances that are no sessions
  bool is_for_programs = false;    // one runs or waits: kernel tasks take slots
  std::size_t starting_ahead = 0;  // instances that start without a slot
  FlowId claimant;                 // the flow that what is claimed is for; none: nothing is
  Bytes claimed{0};                // of memory: nobody else is let in but beside it
  Bytes memory_starting{0};        // of instances that start ahead
  Bytes memory_in_use{0};          // of instances that hold a slot or start
  Bytes memory_committed{0};       // and `pinned` of all others
  SeatMemory seats;
  std::vector<Instance*> instances;  // unordered

  std::size_t computing() const { return slots_in_use - loading; }
  bool has_free_slot() const { return serves && computing() < capacity.slots; }
  std::size_t free_slots() const { return has_free_slot() ? capacity.slots - computing() : 0; }
  TaskLanes task_lanes() const {
    if (is_for_programs) return {capacity.slots, 0, slots_in_use, loading};
    return {lanes == 0 ? capacity.slots : lanes, loads_at_once, slots_in_use, loading};
  }
  // Whether a new instance could have something to run: a slot, or a lane for a session.
  bool has_turn(bool is_session) const { return is_session ? serves && task_lanes().takes(false) : has_free_slot(); }
  // Whether this one could, with what it has to load. REQUIRES: it is not entitled, and so needs a slot.
  bool takes(const Instance& of) const {
    return of.terms.is_session ? serves && task_lanes().takes(of.reload > Duration(0)) : has_free_slot();
  }
  // Whether anything could.
  bool has_turn() const { return serves && (has_free_slot() || task_lanes().takes_any()); }
};

// In pieces, so that a step costs a comparison where its event is known.
[[noreturn]] void refuse(const Instance& instance, InstanceEvent event);
inline void advance(Instance& instance, InstanceEvent event) {
  const auto next = step(instance.life, event);
  if (!next) [[unlikely]]
    refuse(instance, event);
  instance.life = *next;
}

// Alone, or beside nothing but seats, it fits whatever nobody reports: it runs at the price of what is there, rather than never.
// Example: seats have 15 GiB of 16, 1.5 GiB are unreported: what else is there counts as nothing, and fits.
inline bool fits_beside(const Gpu& gpu, Bytes memory, Bytes others) {
  if (others == Bytes(0)) return memory <= gpu.capacity.memory;
  const Bytes seats = std::min(gpu.capacity.memory, gpu.seats.held + gpu.seats.awaited);
  return others + memory <= std::max(gpu.capacity.memory - gpu.unreported, seats);
}

// What an instance expected to need `expected` is counted with on this GPU. One that expects more than the GPU has beside its seats
// counts as all of that: it gets the GPU for itself rather than waiting for ever. The second of an instance that is there.
Bytes counted_memory(const Gpu& gpu, Bytes expected);
Bytes counted_memory(const Instance& instance, Bytes expected);

class InstancePool {
 public:
  InstancePool() = default;
  InstancePool(const InstancePool&) = delete;
  InstancePool& operator=(const InstancePool&) = delete;

  // REQUIRES: not added before; slots <= clients, so that a free slot always finds room among evictable instances. 0: for seats alone.
  void add_gpu(GpuId gpu, const Capacity& capacity);
  void remove_gpu(GpuId gpu);  // and what is claimed there. REQUIRES: no instance is left on it
  // D from now on; what holds a slot keeps it. REQUIRES: as add_gpu.
  void set_slots(GpuId gpu, std::size_t slots);
  // REQUIRES: the GPU is there.
  void set_lanes(GpuId gpu, std::size_t lanes);
  void set_loads_at_once(GpuId gpu, std::size_t loads);
  void set_for_programs(GpuId gpu, bool is_for_programs);
  void set_unreported(GpuId gpu, Bytes unreported) { gpus_.at(gpu).unreported = unreported; }
  // Whether the GPU has slots to give at all.
  void set_serves(GpuId gpu, bool serves);

  // A starting instance, bound to `bound` from the first; none: it starts ahead, without a slot. Ids count up from 1 and
  // are never reused. Until count_memory() says otherwise, all its memory is pinned.
  // REQUIRES: a free slot, unless it starts ahead; it fits beside all others.
  Instance& add(Instant now, FlowId flow, GpuId gpu, Bytes memory, InvocationId bound);
  void remove(InstanceId instance);  // gives back its slot. REQUIRES: it exists
  // What is bound to one that becomes entitled gives its slot back. REQUIRES: nothing is bound to it yet, or its session takes no lane (none
  // were set); nothing is bound to one that is entitled no longer.
  void set_terms(Instance& instance, const InstanceTerms& terms);

  // What it is counted with from now on; `memory` and `pinned` are counted_memory().
  void count_memory(Instance& instance, Bytes memory, Bytes pinned);

  // Memory of kernel tasks' sessions, which device servers have and no instance reports. REQUIRES: the instance is there.
  void set_session_memory(InstanceId instance, SessionMemory memory);
  void set_residence(InstanceId instance, const SessionResidence& residence) {
    task_room_.set_residence(instance, residence);
  }
  const TaskRoom& task_room() const { return task_room_; }

  // Takes or gives back a slot of its GPU, or a lane. REQUIRES bind: nothing bound; takes().
  void bind(Instance& instance, InvocationId invocation);
  void release(Instance& instance);  // nothing bound: no effect
  // All other events. REQUIRES: it means something in the instance's state.
  void take(Instance& instance, InstanceEvent event) {
    using enum InstanceEvent;
    if (event == kBound || event == kBoundToLoad || event == kEnded) refuse(instance, event);
    const bool ends_start = event == kReady || event == kReadyUnawaited;
    if (ends_start) uncount(*instance.on, instance);
    advance(instance, event);
    if (ends_start) count(*instance.on, instance);
    if (event == kLoaded) change_slots(*instance.on, [](Gpu& gpu) { --gpu.loading; });
  }

  Instance* find(InstanceId instance) { return instances_.find(instance); }  // null: not (or no longer) there
  const Instance* find(InstanceId instance) const { return instances_.find(instance); }
  std::vector<InstanceId> ids() const { return instances_.ids(); }   // sorted
  const std::vector<Instance*>& of_flow(FlowId flow) const;          // in no particular order
  const std::vector<const Gpu*>& gpus() const { return in_order_; }  // by id

  const Gpu& gpu(GpuId gpu) const { return gpus_.at(gpu); }
  std::size_t free_slots() const { return free_slots_; }  // of all GPUs
  // Whether anything could run on any GPU, a call of a kernel task or what takes a slot: there may be nothing that does.
  bool has_turn() const { return gpus_with_a_turn_ > 0; }
  std::size_t starting_ahead() const { return starting_ahead_; }  // on all GPUs
  std::size_t slots_in_use() const { return slots_in_use_; }

  // From now on so much of the GPU's memory is kept for the flow, and no other claim holds; FlowId(): none does.
  void set_claim(FlowId flow, GpuId gpu, Bytes memory);

  // Seats that are yet to be taken need so much: nobody else gets it.
  void set_awaited(GpuId gpu, Bytes memory) { gpus_.at(gpu).seats.awaited = memory; }

  // Whether one more of the flow that runs fits beside those that hold a slot or a seat, seats that are awaited, and what another
  // flow has claimed; whether this one would run there; and how it would look with fewer: `fits` with `instances` others that count
  // `committed`. REQUIRES: `memory` is counted_memory().
  bool has_room(const Gpu& gpu, FlowId flow, Bytes memory) const {
    const Bytes kept = gpu.claimant == flow ? Bytes(0) : gpu.claimed;
    return fits_beside(gpu, memory, gpu.memory_in_use + kept + gpu.seats.awaited);
  }
  // Its seat was given it whatever others claim; so was its place, where its memory is held.
  bool has_room(const Instance& instance, Bytes memory) const {
    if (instance.terms.held == PinKind::kHost && !instance.terms.is_seated) {
      const Gpu& gpu = *instance.on;
      const Bytes kept = gpu.claimant == instance.flow ? Bytes(0) : gpu.claimed;
      return fits_beside(gpu, memory, gpu.memory_in_use - instance.kept_memory() + kept + gpu.seats.awaited);
    }
    if (!instance.keeps_memory()) return has_room(*instance.on, instance.flow, memory);
    return fits_beside(*instance.on, memory, instance.on->memory_in_use - instance.memory);
  }
  // Whether it would, once all that runs has ended.
  bool has_room_beside_starts(const Gpu& gpu, Bytes memory) const {
    return fits_beside(gpu, memory, gpu.memory_starting);
  }
  bool fits(const Gpu& gpu, Bytes memory, std::size_t instances, Bytes committed) const {
    return instances < gpu.capacity.clients && fits_beside(gpu, memory, committed);
  }

 private:
  template <typename Change>
  void change_slots(Gpu& gpu, Change change) {
    free_slots_ -= gpu.free_slots();
    gpus_with_a_turn_ -= gpu.has_turn() ? 1 : 0;
    change(gpu);
    free_slots_ += gpu.free_slots();
    gpus_with_a_turn_ += gpu.has_turn() ? 1 : 0;
  }
  void count(Gpu& gpu, const Instance& instance);
  void uncount(Gpu& gpu, const Instance& instance);
  void give_back(Instance& instance, bool loads);

  IdMap<GpuId, Gpu> gpus_;
  std::vector<const Gpu*> in_order_;
  IdMap<InstanceId, Instance> instances_;
  IdMap<FlowId, std::vector<Instance*>> by_flow_;
  TaskRoom task_room_;
  Gpu* claimed_ = nullptr;  // where something is claimed
  std::size_t slots_in_use_ = 0, free_slots_ = 0, gpus_with_a_turn_ = 0, starting_ahead_ = 0;
  std::uint64_t next_instance_ = 1;
};

// Of all GPUs: slots, or lanes for a session, that something could take.
std::size_t free_turns(const InstancePool& pool, bool is_session);

}  // namespace fairlead

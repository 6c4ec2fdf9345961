// Inside of Core: idle instances that are held (HoldDesk). holds.cc has the idea.
#pragma once

#include <map>
#include <utility>
#include <vector>

#include "decide/core/state.h"

namespace fairlead {

// Where every invocation has an instance of its own, or a GPU the instances of one function, there is nothing to hold.
inline bool can_hold(const Policy& policy) {
  return policy.keeps_instances && !policy.one_function_per_gpu;
}

// For one event: made where it is handled.
struct Core::State::Holds {
  State& state;
  Instant now;
  Actions& out;

  // Ends instances that were kept long enough, and holds those that are to be. No effect where nobody is to be held.
  void tend() const;

  // The function's instances are held so from now on. REQUIRES: it is there.
  void keep(FlowId flow, const WarmHold& hold) const;
  void forget(FlowId flow) const;

 private:
  // What is held so far; the order of questions is the order in which it is given.
  struct Given {
    std::map<GpuId, std::size_t> instances;
    std::map<GpuId, Bytes> device, idle;  // idle: of it, by instances that run nothing
    std::map<std::pair<GpuId, TenantId>, Bytes> device_of;
    Bytes staging{0};
    std::map<TenantId, Bytes> staging_of;
  };

  void end_those_kept_long_enough() const;
  void hold_on(const Gpu& gpu, Given& given) const;
  void set_held(Instance& instance, PinKind kind) const;
  PinKind wanted(const Instance& instance) const;
  bool fits(const Instance& instance, PinKind kind, const Given& given) const;
  Bytes memory_of_missing_seats(const Gpu& gpu) const;
  bool fits_beside_others(const Instance& instance, Bytes device, const Given& given) const;
  void give(const Instance& instance, PinKind kind, Given& given) const;
  TenantId tenant_of(const Instance& instance) const { return state.tables.functions.at(instance.flow).spec.tenant; }
};

}  // namespace fairlead

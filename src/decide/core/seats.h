// Inside of Core: instances that are kept in seats (FlowSpec::seats). seats.cc has the idea.
#pragma once

#include <cstddef>
#include <vector>

#include "decide/core/state.h"

namespace fairlead {

// For one event: made where it is handled.
struct Core::State::Seats {
  State& state;
  Instant now;
  Actions& out;

  // Takes the seats that are free, and begins what waits for them. No effect where nobody has seats.
  void tend() const;

  // The function's seats are as its spec says from now on.
  void keep(const CoreFunction& function) const;
  void forget(FlowId flow) const;
  // The same, with other seats: instances that have none any more park, or go as after a change of the function.
  void move(FlowId flow, std::vector<GpuId> seats) const;

  // The function's terms are as its spec says from now on, and its instances stay: free seats are theirs first, and each is told.
  void renew(const CoreFunction& function) const;

  // An instance went that was to stay.
  void note_failure(const Instance& instance) const;

 private:
  void take() const;
  void use() const;
  std::size_t taken(FlowId flow, GpuId gpu) const;
  Bytes take_on(const CoreFunction& function, GpuId gpu, std::size_t wanted) const;
  bool start_on(const FlowSpec& spec, GpuId gpu) const;
  void renew(const CoreFunction& function, Instance& instance) const;
  void clear_surplus(const CoreFunction& function, bool parks) const;
  std::size_t seat_those_there(const FlowSpec& spec, GpuId gpu, std::size_t most) const;
  void set_seated(Instance& instance, bool is_seated) const;
  Instance* free_seat(FlowId flow) const;
  Bytes memory_of(const Instance& seat) const;
};

}  // namespace fairlead

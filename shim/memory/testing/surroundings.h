// The rest of the shim as memory/ sees it, for unit tests: a gate that only remembers, a node that answers as it is told.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

namespace fairlead::shim::testing {

struct Surroundings {
  Surroundings();
  ~Surroundings();
  Surroundings(const Surroundings&) = delete;
  Surroundings& operator=(const Surroundings&) = delete;

  bool gate_closes = true;  // else somebody stays inside past the deadline
  bool gate_closed = false;
  bool captures = false;
  std::function<bool(std::uint64_t)> make_room;  // none: there is no room
  int asked_for_room = 0;

  // An arena of so many bytes, given out from the front; what is given back is checked.
  void make_arena(std::size_t bytes);
  // Its descriptor, which is the caller's; -1: none.
  int take_arena();
  std::size_t arena_bytes = 0;
  std::size_t staged = 0;  // bytes given out
  int staging_requests = 0;
  std::vector<bool> granules;  // given out

 private:
  int arena_fd_ = -1;
};

// The one that lives now.
Surroundings& surroundings();

}  // namespace fairlead::shim::testing

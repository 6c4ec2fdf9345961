#include "shim/memory/testing/surroundings.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "shim/capture.h"
#include "shim/gate.h"
#include "shim/node_link.h"
#include "wire/shim_frames.h"

namespace fairlead::shim {
namespace testing {
namespace {

Surroundings* current = nullptr;

}  // namespace

Surroundings::Surroundings() {
  current = this;
}
Surroundings::~Surroundings() {
  if (arena_fd_ >= 0) ::close(arena_fd_);
  current = nullptr;
}

void Surroundings::make_arena(std::size_t bytes) {
  arena_fd_ = ::memfd_create("arena", MFD_CLOEXEC);
  if (arena_fd_ < 0 || ::ftruncate(arena_fd_, static_cast<off_t>(bytes)) != 0) std::abort();
  arena_bytes = bytes;
  granules.assign(bytes / wire::kStagingGranule, false);
}

int Surroundings::take_arena() {
  return std::exchange(arena_fd_, -1);
}

Surroundings& surroundings() {
  return *current;
}

}  // namespace testing

using testing::surroundings;

namespace gate_detail {
thread_local constinit ThisThread this_thread;
ThreadSlot* claim_slot() {
  static ThreadSlot slot;
  return &slot;
}
void wait_until_open(ThreadSlot*) {}
}  // namespace gate_detail

bool close_gate(std::uint32_t, std::uint64_t) {
  if (surroundings().gate_closes) surroundings().gate_closed = true;
  return surroundings().gate_closes;
}
void open_gate(std::uint32_t) {
  surroundings().gate_closed = false;
}
bool capturing() {
  return surroundings().captures;
}

bool ask_for_room(std::uint64_t bytes) {
  ++surroundings().asked_for_room;
  return surroundings().make_room && surroundings().make_room(bytes);
}

StagingPart ask_for_staging(std::uint64_t bytes) {
  auto& granules = surroundings().granules;
  const std::size_t count = bytes / wire::kStagingGranule;
  ++surroundings().staging_requests;
  for (std::size_t at = 0; at + count <= granules.size(); ++at) {
    const auto first = granules.begin() + static_cast<std::ptrdiff_t>(at);
    if (std::find(first, first + static_cast<std::ptrdiff_t>(count), true) !=
        first + static_cast<std::ptrdiff_t>(count)) {
      continue;
    }
    std::fill_n(first, count, true);
    surroundings().staged += bytes;
    return {at * wire::kStagingGranule, bytes};
  }
  return {};
}

void return_staging(StagingPart part) {
  auto& granules = surroundings().granules;
  for (std::size_t at = part.offset / wire::kStagingGranule; at < (part.offset + part.bytes) / wire::kStagingGranule;
       ++at) {
    if (!granules[at]) std::abort();  // given back twice
    granules[at] = false;
  }
  surroundings().staged -= part.bytes;
}

}  // namespace fairlead::shim

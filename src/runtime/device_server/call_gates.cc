#include "runtime/device_server/call_gates.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>

namespace fairlead {
namespace {

void ring(wire::ShimPage& page) {
  page.bell.fetch_add(1);
  ::syscall(SYS_futex, &page.bell, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

UniqueFd duplicate(const UniqueFd& descriptor) {
  return UniqueFd(::fcntl(descriptor.get(), F_DUPFD_CLOEXEC, 0));
}

}  // namespace

Status CallGates::add(std::uint64_t session, const UniqueFd& page, const UniqueFd& doorbell, bool whole) {
  struct stat info {};
  if (::fstat(page.get(), &info) != 0) return fail(errno_error(errno, "the session's page"));
  if (info.st_size < static_cast<off_t>(sizeof(wire::ShimPage))) {
    return fail(Errc::kInvalidArgument, "the session's page has {} bytes, it needs {}", info.st_size,
                sizeof(wire::ShimPage));
  }
  void* const memory = ::mmap(nullptr, sizeof(wire::ShimPage), PROT_READ | PROT_WRITE, MAP_SHARED, page.get(), 0);
  if (memory == MAP_FAILED) return fail(errno_error(errno, "mmap of the session's page"));
  Gate& gate = gates_[session];
  gate.page = {static_cast<wire::ShimPage*>(memory), [](wire::ShimPage* at) { ::munmap(at, sizeof *at); }};
  gate.doorbell = duplicate(doorbell);
  gate.whole = whole;
  return {};
}

bool CallGates::may_begin(std::uint64_t session, Instant now) {
  const auto found = gates_.find(session);
  if (found == gates_.end()) return true;
  Gate& gate = found->second;
  if (gate.asks) {
    std::uint64_t rings = 0;
    [[maybe_unused]] const ssize_t got = ::read(gate.doorbell.get(), &rings, sizeof rings);
  }
  if (is_paced(gate) && !is_closed(gate)) {
    const auto over = static_cast<std::uint64_t>((now - kLate).time_since_epoch().count());
    if (over > gate.page->open_until_ns.load()) give_back(gate);
  }
  const bool begins = !is_paced(gate) || !is_closed(gate);
  ask(gate, !begins);
  return begins;
}

void CallGates::began(std::uint64_t session) {
  if (const auto found = gates_.find(session); found != gates_.end()) found->second.runs = true;
}

void CallGates::ended(std::uint64_t session, Duration gpu_time) {
  pauses(session);
  used(session, gpu_time);
}

void CallGates::pauses(std::uint64_t session) {
  if (const auto found = gates_.find(session); found != gates_.end()) found->second.runs = false;
}

void CallGates::used(std::uint64_t session, Duration gpu_time) {
  const auto found = gates_.find(session);
  if (found == gates_.end()) return;
  const auto ns = static_cast<std::uint64_t>(std::max(gpu_time, Duration(0)).count());
  found->second.page->gpu_time_ns.fetch_add(ns);
}

std::optional<Duration> CallGates::left(std::uint64_t session, Instant now) const {
  const auto found = gates_.find(session);
  if (found == gates_.end() || !is_paced(found->second)) return Duration::max();
  if (is_closed(found->second)) return std::nullopt;
  const auto until = static_cast<std::int64_t>(found->second.page->open_until_ns.load());
  const Duration left = Duration(until) - now.time_since_epoch();
  if (left < -kLate) return std::nullopt;
  return left;
}

bool CallGates::may_be_cut(std::uint64_t session) const {
  const auto found = gates_.find(session);
  return found != gates_.end() && is_paced(found->second) && !found->second.whole;
}

void CallGates::settle(const std::function<bool(std::uint64_t session)>& waits) {
  for (auto& [session, gate] : gates_) {
    if (gate.runs || !is_paced(gate)) continue;
    const bool is_wanted = waits(session);
    if (!is_wanted && gate.asks) ask(gate, false);
    const bool has_drained = gate.page->drained.load() == gate.page->grant.load();
    if (is_closed(gate) ? !has_drained : !is_wanted) give_back(gate);
  }
}

bool CallGates::asks(std::uint64_t session) const {
  const auto found = gates_.find(session);
  return found != gates_.end() && found->second.asks;
}

void CallGates::add_doorbells(std::vector<int>& descriptors) const {
  for (const auto& [session, gate] : gates_) {
    if (gate.asks) descriptors.push_back(gate.doorbell.get());
  }
}

// The node gives a new grant only to who asks, so that the number that is read behind the gate is this place's.
void CallGates::give_back(Gate& gate) {
  gate.page->gate.fetch_or(wire::kGateNode);
  gate.page->drained.store(gate.page->grant.load());
  ring(*gate.page);
}

void CallGates::ask(Gate& gate, bool asks) {
  if (gate.asks == asks) return;
  gate.asks = asks;
  gate.page->asking.store(asks ? 1 : 0);
  if (asks) gate.page->gate_waits.fetch_add(1);
  ring(*gate.page);
}

}  // namespace fairlead

#include "node/pacing/pace_driver.h"

#include <pthread.h>
#include <sched.h>
#include <sys/prctl.h>

#include <algorithm>
#include <utility>

#include "base/clock.h"

namespace fairlead {
namespace {

// A bell that rings oftener than this is not listened to for the rest of the time.
constexpr int kRings = 64;
constexpr Duration kQuiet = std::chrono::milliseconds(4);
constexpr Duration kLate = std::chrono::microseconds(500);

// A thread that ends frames must run when it has to. Without the privilege it is one among others.
bool become_realtime() {
  ::prctl(PR_SET_TIMERSLACK, 1000UL);
  ::pthread_setname_np(::pthread_self(), "fl-pacer");
  sched_param priority{};
  priority.sched_priority = 1;
  return ::sched_setscheduler(0, SCHED_FIFO | SCHED_RESET_ON_FORK, &priority) == 0;
}

// Never more than fits; what a stranger wrote may be anything.
Duration time_in(std::uint64_t ns) {
  constexpr auto kMost = static_cast<std::uint64_t>(Duration(std::chrono::hours(24 * 365)).count());
  return Duration(static_cast<Duration::rep>(std::min(ns, kMost)));
}

PageReading read(const wire::ShimPage& page) {
  return {.asks = page.asking.load() != 0,
          .drained = page.drained.load(),
          .is_open = (page.gate.load() & wire::kGateNode) == 0,
          .gpu_time = time_in(page.gpu_time_ns.load()),
          .has_left = (page.pace.load() & wire::kPacePlaces) == 0};
}

}  // namespace

PaceDriver::PaceDriver(PaceDriverOptions options)
    : options_(std::move(options)), bells_(options_.waits_for_bells), places_(options_.places) {
  polls_.store(bells_.polls());
  thread_ = std::thread([this] { run(); });
}

PaceDriver::~PaceDriver() {
  {
    const MutexLock lock(mutex_);
    stops_ = true;
    for (const auto& [number, heard] : pages_) let_go(heard);
    pages_.clear();
  }
  Bells::ring(own_bell_);
  thread_.join();
}

Status PaceDriver::set_share(InstanceId instance, const PacedShare& share) {
  const MutexLock lock(mutex_);
  if (Status set = places_.set_share(monotonic_now(), instance, share); !set) return set;
  shares_[instance] = share;
  set_leashes();
  carry_out();
  Bells::ring(own_bell_);
  return {};
}

void PaceDriver::remove_instance(InstanceId instance) {
  const MutexLock lock(mutex_);
  places_.remove_instance(monotonic_now(), instance);
  carry_out();
  std::erase_if(pages_, [&](const auto& entry) {
    if (entry.second.instance != instance) return false;
    let_go(entry.second);
    return true;
  });
  shares_.erase(instance);
  set_leashes();
  Bells::ring(own_bell_);
}

Status PaceDriver::add_page(InstanceId instance, ProcessPage number, Page page, LetIn let_in) {
  const MutexLock lock(mutex_);
  if (!places_.knows(instance)) {
    return fail(Errc::kInvalidArgument, "instance {} has no share of the device", instance.value());
  }
  if (page->version < wire::kShimVersionOfPlaces) {
    return fail(Errc::kInvalidArgument,
                "the shim of instance {} is of version {}, places need {}: its work is not paced", instance.value(),
                std::uint32_t{page->version}, wire::kShimVersionOfPlaces);
  }
  page->grant.store(0);
  page->drained.store(0);  // of an earlier driver: the first grant has that number, too
  page->pace.store(wire::kPacePlaces);
  page->gate.fetch_or(wire::kGateNode);
  places_.add_page(instance, number);
  pages_[number] = {
      .instance = instance, .page = std::move(page), .let_in = std::move(let_in), .quiet_at = monotonic_now()};
  set_leashes();
  Bells::ring(own_bell_);
  return {};
}

void PaceDriver::remove_page(ProcessPage number) {
  const MutexLock lock(mutex_);
  const auto found = pages_.find(number);
  if (found == pages_.end()) return;
  let_go(found->second);
  pages_.erase(found);
  places_.remove_page(monotonic_now(), number);
  carry_out();
  Bells::ring(own_bell_);
}

std::vector<LivePlaces::Finding> PaceDriver::device_says(InstanceId instance, Duration used) {
  const MutexLock lock(mutex_);
  places_.device_says(monotonic_now(), instance, used);
  carry_out();
  return places_.take_findings();
}

bool PaceDriver::knows(InstanceId instance) const {
  const MutexLock lock(mutex_);
  return places_.knows(instance);
}

PaceSnapshot PaceDriver::snapshot() const {
  const MutexLock lock(mutex_);
  PaceSnapshot snapshot;
  snapshot.instances = places_.delivered(monotonic_now());
  snapshot.spans.assign(places_.spans().begin(), places_.spans().end());
  snapshot.frame = places_.frame_length();
  snapshot.is_realtime = is_realtime_.load();
  snapshot.polls = polls_.load();
  snapshot.late = late_;
  snapshot.wakes = wakes_;
  return snapshot;
}

std::vector<DeliveredService> PaceDriver::delivered() const {
  const MutexLock lock(mutex_);
  return places_.delivered(monotonic_now());
}

// ---- the thread

void PaceDriver::run() {
  is_realtime_.store(become_realtime());
  std::vector<Page> listened;  // mapped for as long as the wait takes
  while (true) {
    std::optional<Instant> until;
    std::vector<LivePlaces::Finding> findings;
    {
      const MutexLock lock(mutex_);
      if (stops_) return;
      ++wakes_;
      const Instant now = monotonic_now();
      if (const auto due = places_.next_tick(); due && now - *due > kLate) ++late_;
      bells_.clear();
      bells_.add(own_bell_, own_bell_.load());
      until = listen(now, listened);
      look(now);
      carry_out();
      findings = places_.take_findings();
      const auto tick = places_.next_tick();
      if (tick) until = until ? std::min(*until, *tick) : *tick;
    }
    tell(findings);
    bells_.wait(until);
    polls_.store(bells_.polls());
  }
}

// Bells are read before what they are about, so that a ring in between is not missed. Returns when a bell that is not listened to is
// to be heard again.
std::optional<Instant> PaceDriver::listen(Instant now, std::vector<Page>& pages) {
  std::optional<Instant> again;
  pages.clear();
  for (auto& [number, heard] : pages_) {
    const std::uint32_t bell = heard.page->bell.load();
    heard.rings += bell != heard.bell ? 1 : 0;
    heard.bell = bell;
    if (now >= heard.quiet_at) {
      heard.quiet_at = now + kQuiet;
      heard.rings = 0;
    }
    if (heard.rings > kRings) {
      again = again ? std::min(*again, heard.quiet_at) : heard.quiet_at;
      continue;
    }
    bells_.add(heard.page->bell, bell);
    pages.push_back(heard.page);
  }
  return again;
}

void PaceDriver::look(Instant now) {
  for (const auto& [number, heard] : pages_) places_.observe(now, number, read(*heard.page));
  places_.decide(now);
}

void PaceDriver::carry_out() {
  for (const PageOrder& order : places_.take_orders()) {
    const auto found = pages_.find(order.page);
    if (found == pages_.end()) continue;
    wire::ShimPage& page = *found->second.page;
    const auto until = static_cast<std::uint64_t>(order.until.time_since_epoch().count());
    switch (order.kind) {
      case PageOrder::Kind::kExtend: page.open_until_ns.store(until); break;
      case PageOrder::Kind::kClose: page.gate.fetch_or(wire::kGateNode); break;
      case PageOrder::Kind::kOpen:
        page.open_until_ns.store(until);
        page.grant.store(order.grant);
        page.gate.fetch_and(~wire::kGateNode);
        wake(found->second);  // only who asks is let in
        break;
    }
  }
}

// Little is to be in flight where others may want the device, or the instance's own limit is near. One alone needs no leash.
void PaceDriver::set_leashes() {
  const bool has_others = shares_.size() > 1;
  for (const auto& [number, heard] : pages_) {
    const auto share = shares_.find(heard.instance);
    const bool is_limited = share != shares_.end() && share->second.limit_percent < 100;
    const std::uint32_t pace = wire::kPacePlaces | (has_others || is_limited ? wire::kPaceLeash : 0);
    std::uint32_t before = heard.page->pace.load();
    // Of a process that has lost its connection it is 0, and stays so.
    if ((before & wire::kPacePlaces) != 0) heard.page->pace.compare_exchange_strong(before, pace);
  }
}

void PaceDriver::wake(const Heard& heard) {
  Bells::wake_all(heard.page->gate);
  if (heard.let_in) heard.let_in();
}

void PaceDriver::let_go(const Heard& heard) {
  heard.page->pace.store(0);
  heard.page->gate.fetch_and(~wire::kGateNode);
  wake(heard);
}

void PaceDriver::tell(const std::vector<LivePlaces::Finding>& findings) const {
  if (!options_.named) return;
  for (const LivePlaces::Finding& finding : findings) options_.named(finding.instance, finding.text);
}

}  // namespace fairlead

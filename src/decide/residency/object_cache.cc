// Room is made in one pass over a plan: victims in the order of the strategy, skipping what the request itself needs,
// until enough is free. Only a complete plan is carried out, so a refused request changes nothing.
//
// kCost is GreedyDual-Size-Frequency: an object's priority is set at its use to
//   clock + uses x (time to bring it back, per 64 KiB)
// and the clock rises to the priority of whatever is evicted, so that what was popular long ago ages. Dynamic objects used
// once add nothing: a scan of large inputs evicts itself. Example: a constant of 64 MiB used twice, 5.4 us per block from
// the host tier: clock + 10.8 us; a stream of inputs at `clock` passes below it for as long as any of them is there.
#include "decide/residency/object_cache.h"

#include <algorithm>
#include <array>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "base/check.h"

namespace fairlead {
namespace {

constexpr std::array<std::pair<std::string_view, CacheEviction>, 3> kEvictionNames{
    {{"single-use", CacheEviction::kSingleUse}, {"lru", CacheEviction::kLru}, {"cost", CacheEviction::kCost}}};

constexpr std::int64_t kBlock = 64 << 10;
constexpr std::int64_t kCopyLatencyNs = 20'000;  // of one copy to the device, however small
constexpr std::int64_t kMaxUses = 64;            // more says nothing more, and would outlive any change of load

struct Entry {
  Bytes bytes{0};
  ObjectKind kind = ObjectKind::kInput;
  bool on_device = false, on_host = false;
  bool in_data_layer = false;  // can be fetched again
  bool being_written = false;
  bool removed = false;  // goes at its last release
  int pins = 0;
  std::int64_t uses = 0;
  Instant used;
  std::int64_t priority = 0;  // kCost

  bool only_on_device() const { return on_device && !on_host && !in_data_layer; }
};

struct Held {
  std::vector<ObjectId> objects;
  Bytes temporaries{0};
};

}  // namespace

std::optional<CacheEviction> cache_eviction_named(std::string_view name) {
  for (const auto& [known, eviction] : kEvictionNames) {
    if (known == name) return eviction;
  }
  return std::nullopt;
}

std::string_view cache_eviction_name(CacheEviction eviction) {
  for (const auto& [known, meaning] : kEvictionNames) {
    if (meaning == eviction) return known;
  }
  return "unknown";
}

struct ObjectCache::State {
  using Entries = std::unordered_map<ObjectId, Entry>;  // victims are sorted by a total order wherever it is iterated
  using Victim = std::pair<const ObjectId, Entry>;

  ObjectCacheOptions options;
  Entries entries;
  std::unordered_map<RequestId, Held> held;
  Bytes device_used{0}, device_pinned{0}, host_used{0};  // temporaries are used and pinned
  std::int64_t clock = 0;
  ObjectCacheCounters counters;

  // What acquire() is about to do.
  struct Plan {
    Bytes room{0};                      // still to be freed on the device
    Bytes host_free{0};                 // after the steps so far
    std::vector<Victim*> host_victims;  // best first; taken from the front
    std::size_t next_host_victim = 0;
    CacheActions steps;
  };

  Status admit(const std::vector<ObjectNeed>& needs, Bytes temporaries) const;
  bool wants(const std::vector<ObjectNeed>& needs, ObjectId id) const;
  std::vector<Victim*> device_victims(const std::vector<ObjectNeed>& needs);
  std::vector<Victim*> host_victims(const std::vector<ObjectNeed>& needs);
  bool make_host_room(Bytes bytes, Plan& plan) const;
  Status free_device(const std::vector<ObjectNeed>& needs, Plan& plan);
  void bring(const std::vector<ObjectNeed>& needs, Plan& plan);
  void apply(const CacheAction& action);
  void carry_out(const WriteBack& step, Entry& entry);
  void carry_out(const EvictObject& step, Entry& entry);
  void carry_out(const ForgetObject& step, Entry& entry);
  void carry_out(const LoadObject& step, Entry& entry);
  void carry_out(const PlaceOutput& step, Entry& entry);
  void use(Instant now, const ObjectNeed& need);
  std::int64_t priority_of(const Entry& entry) const;
  void drop(ObjectId id, CacheActions& out);
};

namespace {

std::int64_t transfer_ns(Bytes bytes, double bytes_per_second) {
  return static_cast<std::int64_t>(static_cast<double>(bytes.count()) / bytes_per_second * 1e9);
}

}  // namespace

bool ObjectCache::State::wants(const std::vector<ObjectNeed>& needs, ObjectId id) const {
  return std::any_of(needs.begin(), needs.end(), [id](const ObjectNeed& need) { return need.object == id; });
}

Status ObjectCache::State::admit(const std::vector<ObjectNeed>& needs, Bytes temporaries) const {
  Bytes total = temporaries;
  Bytes newly_pinned = temporaries;
  for (const ObjectNeed& need : needs) {
    total += need.bytes;
    const auto found = entries.find(need.object);
    if (found == entries.end() || found->second.pins == 0) newly_pinned += need.bytes;
    FL_CHECK(found == entries.end() || (need.kind != ObjectKind::kOutput && !found->second.being_written),
             "object {} is written by two requests, or read while it is written", need.object.value());
  }
  if (total > options.device) {
    return fail(Errc::kTooLarge,
                "the call's objects and temporaries take {} bytes of device memory, the device server has {}",
                total.count(), options.device.count());
  }
  if (device_pinned + newly_pinned > options.device) {
    return fail(Errc::kResourceExhausted, "the call needs {} bytes of device memory, calls that run hold {} of {}",
                newly_pinned.count(), device_pinned.count(), options.device.count());
  }
  return {};
}

std::vector<ObjectCache::State::Victim*> ObjectCache::State::device_victims(const std::vector<ObjectNeed>& needs) {
  std::vector<Victim*> victims;
  for (Victim& entry : entries) {
    if (entry.second.on_device && entry.second.pins == 0) victims.push_back(&entry);
  }
  const auto order = [this](const Victim* victim) {
    const Entry& entry = victim->second;
    std::int64_t rank = 0;
    if (options.eviction == CacheEviction::kSingleUse) rank = entry.uses > 1 ? 1 : 0;
    if (options.eviction == CacheEviction::kCost) rank = entry.priority;
    return std::tuple(rank, entry.used, victim->first);
  };
  std::sort(victims.begin(), victims.end(), [&](auto* a, auto* b) { return order(a) < order(b); });
  std::erase_if(victims, [&](const Victim* victim) { return wants(needs, victim->first); });
  return victims;
}

std::vector<ObjectCache::State::Victim*> ObjectCache::State::host_victims(const std::vector<ObjectNeed>& needs) {
  std::vector<Victim*> victims;
  for (Victim& entry : entries) {
    if (entry.second.on_host && entry.second.in_data_layer && entry.second.pins == 0) victims.push_back(&entry);
  }
  const auto order = [](const Victim* victim) { return std::tuple(victim->second.used, victim->first); };
  std::sort(victims.begin(), victims.end(), [&](auto* a, auto* b) { return order(a) < order(b); });
  std::erase_if(victims, [&](const Victim* victim) { return wants(needs, victim->first); });
  return victims;
}

// Nothing is planned when there is not enough.
bool ObjectCache::State::make_host_room(Bytes bytes, Plan& plan) const {
  Bytes free = plan.host_free;
  std::size_t last = plan.next_host_victim;
  for (; free < bytes && last < plan.host_victims.size(); ++last) free += plan.host_victims[last]->second.bytes;
  if (free < bytes) return false;
  for (std::size_t i = plan.next_host_victim; i < last; ++i) {
    plan.steps.emplace_back(ForgetObject{plan.host_victims[i]->first});
  }
  plan.next_host_victim = last;
  plan.host_free = free - bytes;
  return true;
}

Status ObjectCache::State::free_device(const std::vector<ObjectNeed>& needs, Plan& plan) {
  if (plan.room <= Bytes(0)) return {};
  for (const Victim* victim : device_victims(needs)) {
    const Entry& entry = victim->second;
    if (entry.only_on_device()) {
      if (!make_host_room(entry.bytes, plan)) continue;
      plan.steps.emplace_back(WriteBack{victim->first});
    }
    plan.steps.emplace_back(EvictObject{victim->first});
    plan.room -= entry.bytes;
    if (plan.room <= Bytes(0)) return {};
  }
  return fail(
      Errc::kResourceExhausted,
      "{} bytes of device memory more are needed, and the rest is pinned or holds outputs that find no room in the "
      "host tier of {} bytes: delete or read outputs, or make the host tier larger",
      plan.room.count(), options.host.count());
}

void ObjectCache::State::bring(const std::vector<ObjectNeed>& needs, Plan& plan) {
  for (const ObjectNeed& need : needs) {
    const auto found = entries.find(need.object);
    if (need.kind == ObjectKind::kOutput) {
      plan.steps.emplace_back(PlaceOutput{need.object});
    } else if (found == entries.end() || !found->second.on_device) {
      const bool on_host = found != entries.end() && found->second.on_host;
      if (!on_host && make_host_room(need.bytes, plan)) entries[need.object].on_host = true;  // counted by apply()
      plan.steps.emplace_back(LoadObject{need.object, on_host});
    }
  }
}

Status ObjectCache::acquire(Instant now, RequestId request, const std::vector<ObjectNeed>& needs, Bytes temporaries,
                            CacheActions& out) {
  State& s = *state_;
  FL_CHECK(!s.held.contains(request), "request {} holds objects already", request.value());
  if (Status admitted = s.admit(needs, temporaries); !admitted) return admitted;

  State::Plan plan;
  plan.room = s.device_used + temporaries - s.options.device;
  bool loads = false;
  for (const ObjectNeed& need : needs) {
    if (on_device(need.object)) continue;
    plan.room += need.bytes;
    loads = true;
  }
  plan.host_free = s.options.host - s.host_used;
  if (loads || plan.room > Bytes(0)) plan.host_victims = s.host_victims(needs);
  if (Status freed = s.free_device(needs, plan); !freed) return freed;

  for (const CacheAction& step : plan.steps) s.apply(step);
  const std::size_t evicting = plan.steps.size();
  Held& held = s.held[request];
  held.temporaries = temporaries;
  for (const ObjectNeed& need : needs) held.objects.push_back(need.object);
  s.bring(needs, plan);
  for (const ObjectNeed& need : needs) s.use(now, need);
  for (std::size_t i = evicting; i < plan.steps.size(); ++i) s.apply(plan.steps[i]);
  s.device_used += temporaries;
  s.device_pinned += temporaries;
  for (const ObjectNeed& need : needs) {
    Entry& entry = s.entries.at(need.object);
    entry.priority = s.priority_of(entry);
    if (entry.pins++ == 0) s.device_pinned += entry.bytes;
  }
  out.insert(out.end(), plan.steps.begin(), plan.steps.end());
  return {};
}

// Counts the use; an object that nobody knew gets its entry.
void ObjectCache::State::use(Instant now, const ObjectNeed& need) {
  Entry& entry = entries[need.object];
  if (entry.uses == 0) {
    entry.bytes = need.bytes;
    entry.kind = need.kind;
    entry.in_data_layer = need.kind != ObjectKind::kOutput;
  }
  FL_CHECK(entry.bytes == need.bytes, "object {} has {} bytes, a request says {}", need.object.value(),
           entry.bytes.count(), need.bytes.count());
  entry.used = now;
  entry.uses = std::min(entry.uses + 1, kMaxUses);
  if (need.kind == ObjectKind::kOutput) {
    entry.being_written = true;
  } else if (entry.on_device) {
    ++counters.hits;
  }
}

std::int64_t ObjectCache::State::priority_of(const Entry& entry) const {
  if (entry.kind != ObjectKind::kConstant && entry.uses < 2) return clock;
  std::int64_t reload = kCopyLatencyNs + transfer_ns(entry.bytes, options.load_bytes_per_second);
  if (!entry.on_host) reload += transfer_ns(entry.bytes, options.fetch_bytes_per_second);
  const std::int64_t blocks = std::max<std::int64_t>(1, (entry.bytes.count() + kBlock - 1) / kBlock);
  return clock + entry.uses * (reload / blocks);
}

void ObjectCache::State::apply(const CacheAction& action) {
  std::visit([this](const auto& step) { carry_out(step, entries.at(step.object)); }, action);
}

void ObjectCache::State::carry_out(const WriteBack&, Entry& entry) {
  entry.on_host = true;
  host_used += entry.bytes;
  ++counters.write_backs;
  counters.written_back += entry.bytes;
}

void ObjectCache::State::carry_out(const EvictObject& step, Entry& entry) {
  entry.on_device = false;
  device_used -= entry.bytes;
  clock = std::max(clock, entry.priority);
  ++counters.evictions;
  if (!entry.on_host) entries.erase(step.object);
}

void ObjectCache::State::carry_out(const ForgetObject& step, Entry& entry) {
  entry.on_host = false;
  host_used -= entry.bytes;
  if (!entry.on_device) entries.erase(step.object);
}

void ObjectCache::State::carry_out(const LoadObject& step, Entry& entry) {
  ++(step.in_host_tier ? counters.host_hits : counters.misses);
  if (!step.in_host_tier && entry.on_host) host_used += entry.bytes;
  entry.on_device = true;
  device_used += entry.bytes;
  counters.loaded += entry.bytes;
}

void ObjectCache::State::carry_out(const PlaceOutput&, Entry& entry) {
  entry.on_device = true;
  device_used += entry.bytes;
}

void ObjectCache::State::drop(ObjectId id, CacheActions& out) {
  const auto found = entries.find(id);
  Entry& entry = found->second;
  if (entry.on_device) {
    device_used -= entry.bytes;
    out.emplace_back(EvictObject{id});
  }
  if (entry.on_host) {
    host_used -= entry.bytes;
    out.emplace_back(ForgetObject{id});
  }
  entries.erase(found);
}

void ObjectCache::release(RequestId request, bool completed, CacheActions& out) {
  State& s = *state_;
  const auto held = s.held.find(request);
  FL_CHECK(held != s.held.end(), "request {} holds nothing", request.value());
  for (const ObjectId id : held->second.objects) {
    Entry& entry = s.entries.at(id);
    if (--entry.pins > 0) continue;
    s.device_pinned -= entry.bytes;
    const bool written = std::exchange(entry.being_written, false);
    if (entry.removed || (written && !completed)) s.drop(id, out);
  }
  s.device_used -= held->second.temporaries;
  s.device_pinned -= held->second.temporaries;
  s.held.erase(held);
}

void ObjectCache::written_back(ObjectId object) {
  if (const auto found = state_->entries.find(object); found != state_->entries.end()) {
    found->second.in_data_layer = true;
  }
}

void ObjectCache::remove(ObjectId object, CacheActions& out) {
  const auto found = state_->entries.find(object);
  if (found == state_->entries.end()) return;
  if (found->second.pins > 0) {
    found->second.removed = true;
  } else {
    state_->drop(object, out);
  }
}

bool ObjectCache::on_device(ObjectId object) const {
  const auto found = state_->entries.find(object);
  return found != state_->entries.end() && found->second.on_device;
}

bool ObjectCache::on_host(ObjectId object) const {
  const auto found = state_->entries.find(object);
  return found != state_->entries.end() && found->second.on_host;
}

Bytes ObjectCache::missing(const std::vector<ObjectNeed>& needs) const {
  Bytes bytes{0};
  for (const ObjectNeed& need : needs) {
    if (need.kind != ObjectKind::kOutput && !on_device(need.object)) bytes += need.bytes;
  }
  return bytes;
}

ObjectCache::ObjectCache(const ObjectCacheOptions& options) : state_(std::make_unique<State>()) {
  state_->options = options;
}
ObjectCache::~ObjectCache() = default;

Bytes ObjectCache::device_free() const {
  return state_->options.device - state_->device_used;
}

Bytes ObjectCache::device_used() const {
  return state_->device_used;
}
Bytes ObjectCache::host_used() const {
  return state_->host_used;
}
const ObjectCacheCounters& ObjectCache::counters() const {
  return state_->counters;
}

}  // namespace fairlead

// Where do the bytes of kernel tasks live? The objects of one device server in two tiers: device memory and host memory.
// Inputs are in both (inclusive); outputs are on the device only, until they are evicted or asked for. Decides what is
// loaded, evicted and written back; copies nothing (KaaS section 4.1.3).
//
// Example: 4 GB of device memory, constants A and B of 2 GB there. A request needs A and C (2 GB): A is pinned first,
// then B makes room ("evict B", its bytes are in the host tier, so nothing is copied), then "load C". Without the pin, C
// might have pushed A out and the request had evicted its own hit.
//
// Time: every entry point takes `now`; no clock here. Threads: not thread-safe; the device server's loop owns it.
// Determinism: ties break by ObjectId.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <variant>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "base/units.h"

namespace fairlead {

using ObjectId = Id<struct ObjectTag>;    // one per distinct content, or per output
using RequestId = Id<struct RequestTag>;  // one per call that holds objects

enum class ObjectKind { kConstant, kInput, kOutput };

struct ObjectNeed {
  ObjectId object;
  Bytes bytes{0};
  ObjectKind kind = ObjectKind::kInput;
};

// What is to be done, in this order, before the request may run.
struct WriteBack {  // its only copy is on the device: copy to the host tier before it is evicted
  ObjectId object;
  bool operator==(const WriteBack&) const = default;
};
struct EvictObject {  // its device memory is free now
  ObjectId object;
  bool operator==(const EvictObject&) const = default;
};
struct ForgetObject {  // out of the host tier; the data layer has it, or its owner removed it
  ObjectId object;
  bool operator==(const ForgetObject&) const = default;
};
struct LoadObject {  // to the device; from the host tier, or from the data layer first
  ObjectId object;
  bool in_host_tier = false;
  bool operator==(const LoadObject&) const = default;
};
struct PlaceOutput {  // device memory for an output that this request writes
  ObjectId object;
  bool operator==(const PlaceOutput&) const = default;
};
using CacheAction = std::variant<WriteBack, EvictObject, ForgetObject, LoadObject, PlaceOutput>;
using CacheActions = std::vector<CacheAction>;

enum class CacheEviction {
  kSingleUse,  // the paper's: objects used once first, then the rest; each set in LRU order
  kLru,
  kCost,  // by reload time, size and frequency; a scan of large objects does not sweep the rest out
};
std::optional<CacheEviction> cache_eviction_named(std::string_view name);  // "single-use", "lru", "cost"
std::string_view cache_eviction_name(CacheEviction eviction);

struct ObjectCacheOptions {
  Bytes device{0};  // for objects and temporaries
  Bytes host{0};
  CacheEviction eviction = CacheEviction::kCost;
  double load_bytes_per_second = 12e9;  // host tier to device
  double fetch_bytes_per_second = 2e9;  // data layer to host tier
};

struct ObjectCacheCounters {
  std::uint64_t hits = 0, host_hits = 0,
                misses = 0;  // objects that requests needed: on the device, on the host, neither
  std::uint64_t evictions = 0, write_backs = 0;
  Bytes loaded{0}, written_back{0};
};

class ObjectCache {
 public:
  explicit ObjectCache(const ObjectCacheOptions& options);
  ~ObjectCache();

  // Pins what the request needs, reserves `temporaries`, and says what must be done first. kTooLarge: it would not fit on
  // an empty device (needs, limit). kResourceExhausted: not beside what is pinned now, or outputs that only the device
  // has find no room in the host tier; try again after a release(). Nothing has changed then. A need of kOutput is written
  // by the request: a new object. REQUIRES: the id holds nothing; no object twice; none that another request writes.
  Status acquire(Instant now, RequestId request, const std::vector<ObjectNeed>& needs, Bytes temporaries,
                 CacheActions& out);
  // It is over. `completed` false: its outputs are not there. What goes with it (those, objects removed meanwhile) is
  // said in `out`.
  void release(RequestId request, bool completed, CacheActions& out);

  // An output's bytes are in the data layer now (fetched by somebody): evicting it copies nothing, and its host copy may
  // be forgotten.
  void written_back(ObjectId object);
  // Deleted by its owner: forgotten at once, or at its last release.
  void remove(ObjectId object, CacheActions& out);

  bool on_device(ObjectId object) const;
  bool on_host(ObjectId object) const;
  Bytes missing(const std::vector<ObjectNeed>& needs) const;  // bytes that acquire() would load
  Bytes device_used() const;
  Bytes device_free() const;
  Bytes host_used() const;
  const ObjectCacheCounters& counters() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace fairlead

// The data layer of one node: immutable objects in shared memory, found by tenant and key. Written once, then sealed; from
// then on anybody may map them without a copy (the device server, programs, local clients). When memory is short the
// least recently used sealed ones are spilled to disk and come back on use. A reference may exist before its object: whoever
// waits for it is called when it is sealed, or has failed and why.
//
//            create                       seal                       memory is short
//   (none) ─────────> pending ──────────────────────────> sealed ─────────────────────> spilled
//                       │ promise: an output on a device      ^                             │
//                       └──────────> on device ──fetch────────┘<───────────open─────────────┘
//
// An object acknowledged as sealed survives the node's death (kill -9), not the machine's. One that is only on a device is
// gone with its device server: waiters and later readers get kUnavailable with the advice to run its task again.
//
// Equal content of one tenant is stored once. Memory in use never exceeds its limit; who asks for more waits while others
// are spilled, and is refused (kResourceExhausted) where nothing can be.
//
// Threads: everything on the io_context's thread. Callbacks run on it, never from inside a call of this class, and not
// after the store is gone. Writing, hashing, spilling and reading back are done by a worker thread.
#pragma once

#include <boost/asio/io_context.hpp>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "base/unique_fd.h"
#include "base/units.h"

namespace fairlead {

struct ObjectName {
  std::string tenant;  // "default" where nobody says another; [A-Za-z0-9-_]{1,64}
  std::string key;     // model/kernel_task.h: validate_object_key
  auto operator<=>(const ObjectName&) const = default;
};

enum class ObjectState { kPending, kOnDevice, kSealed, kSpilled, kFailed };
std::string_view object_state_name(ObjectState state);  // "pending", "on-device", "sealed", "spilled", "failed"

struct ObjectInfo {
  ObjectName name;
  Bytes bytes{0};
  ObjectState state = ObjectState::kPending;
  std::string content;  // BLAKE2b-256 of the bytes, 32 raw bytes; empty until sealed. Equal content, equal objects
  std::string failure;  // kFailed: why; the key may be used again
  std::int64_t created_ms = 0, last_used_ms = 0;  // since 1970
  std::optional<std::int64_t> expires_ms;         // lifetime; empty: until deleted
  std::string path;          // kSealed: a file that local clients may map; kPending after create(): the one to write
  std::string node;          // the other node that has it; empty: this one
  std::uint64_t serial = 0;  // tells it from another one that had this name before, for as long as the store is open
};

// A sealed object. The descriptor stays readable when the object is deleted or spilled meanwhile.
struct OpenObject {
  ObjectInfo info;
  UniqueFd memory;  // read only
};

struct ObjectStoreOptions {
  std::string memory_dir;       // on tmpfs, of this node alone
  std::string spill_dir;        // on disk
  Bytes memory_limit = gib(1);  // less where the file system of memory_dir is smaller
  Bytes spill_limit = gib(64);
  Bytes tenant_quota = gib(64);                          // of one tenant, memory and disk together
  Duration write_limit = std::chrono::hours(1);          // what was created and not sealed by then is abandoned
  std::function<std::int64_t()> now_ms = wall_clock_ms;  // since 1970; for lifetimes
};

// "/dev/shm/fairlead-" and a digest of the absolute path of the state folder: each node has its own.
std::string default_object_memory_dir(const std::string& state_dir);

class ObjectStore {
 public:
  template <typename T>
  using Callback = std::function<void(Result<T>)>;

  // Finds what an earlier node left in the folders; pending objects of it are removed. `io` must outlive the store.
  static Result<std::unique_ptr<ObjectStore>> open(boost::asio::io_context& io, ObjectStoreOptions options);
  virtual ~ObjectStore() = default;

  // A new object, pending: `bytes` of shared memory to write. kAlreadyExists, kTooLarge, kResourceExhausted (quota,
  // limits; named). A lifetime counts from here.
  virtual void create(const ObjectName& name, Bytes bytes, std::optional<Duration> lifetime,
                      Callback<UniqueFd> done) = 0;
  // Of one that was created and written. Who still has it open for writing no longer writes to the object: it is copied.
  virtual void seal(const ObjectName& name, Callback<ObjectInfo> done) = 0;
  // Pending or on a device: waiters and later readers get `why`; the key is free again.
  virtual void abandon(const ObjectName& name, Error why) = 0;
  // All at once, for bytes that are at hand.
  virtual void put(const ObjectName& name, std::string bytes, std::optional<Duration> lifetime,
                   Callback<ObjectInfo> done) = 0;

  // An output that is on a device: `fetch` is called at most once at a time, when somebody wants the bytes; it writes them
  // to the descriptor and says so, on this thread. `gone` is called once when the object is removed or has failed, also after
  // it was sealed: who made it need not keep it. kTooLarge, kResourceExhausted: the object could not be kept; not where as
  // many bytes were expected. REQUIRES: the object is expected, or there is none of that name.
  using Fetch = std::function<void(UniqueFd destination, std::function<void(Status)> done)>;
  virtual Status promise(const ObjectName& name, Bytes bytes, Fetch fetch, std::function<void()> gone = {}) = 0;
  // A reference to an object that somebody is about to make; `promise`, `create` or `abandon` follow. Its bytes count
  // against the tenant's quota from here on, as those of a promised object do: kAlreadyExists, kTooLarge,
  // kResourceExhausted. 0: nobody knows how many.
  virtual Status expect(const ObjectName& name, Bytes bytes) = 0;

  // A reference before anybody is about to write the object, for readers to wait for. Any of the calls above may write it,
  // and one that does not succeed, even an abandoned one, leaves the reservation, until `release`: waiters and later
  // readers get `why`. It ends by itself when the object is sealed or on a device; release() then does nothing.
  virtual Status reserve(const ObjectName& name) = 0;
  virtual void release(const ObjectName& name, Error why) = 0;

  // Calls `done` once: the object is sealed or on a device, now or later, or fails from now on. One that has failed before
  // does not count: its key is free for another. After unwatch() `done` is not called. Of a deleted object nothing is heard.
  using WatchId = std::uint64_t;
  virtual WatchId watch(const ObjectName& name, std::function<void(Status)> done) = 0;
  virtual void unwatch(WatchId watch) = 0;

  // The bytes; fetched or read back first where they are not in memory. A pending object is waited for until `patience`
  // is over: kDeadlineExceeded. kCorrupt names the damaged file.
  virtual void open_object(const ObjectName& name, Duration patience, Callback<OpenObject> done) = 0;
  virtual Result<ObjectInfo> info(const ObjectName& name) const = 0;
  virtual std::vector<ObjectInfo> list(const std::string& tenant, const std::string& prefix, const std::string& after,
                                       std::size_t limit) const = 0;  // by key
  virtual Status remove(const ObjectName& name) = 0;

  // The same of all nodes that this one asks (store/cluster_object_store.h); of this one alone, where it asks nobody.
  virtual void locate(const ObjectName& name, Callback<ObjectInfo> done) = 0;
  virtual void remove_everywhere(const ObjectName& name, std::function<void(Status)> done) = 0;

  // The folder of a tenant's sealed objects in memory, to be shown to its functions.
  virtual Result<std::string> content_dir(const std::string& tenant) = 0;

  struct Usage {
    std::size_t objects = 0;
    Bytes memory{0}, memory_limit{0}, spilled{0}, spill_limit{0}, on_device{0};
    std::uint64_t spills = 0, reads_back = 0;
  };
  virtual Usage usage() const = 0;
};

}  // namespace fairlead

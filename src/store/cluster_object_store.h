// An object store that asks other nodes for what it lacks. Whoever opens an object that only another node has gets a copy, which stays
// here for an hour; all else is about this node's own objects.
//
//   open_object("x") ── is it here? ── yes ──────────────────────────> here
//                            └──── no ──> others.fetch("x") ──copy──> here
//
// Objects do not change, so a copy is as good as the object. A key that two nodes have written is two objects: each node sees its own.
// Who opens an object while it is on its way waits for the same copy, each for as long as he said. One that is being written at the
// other node is asked for again and again, a quarter of a second at a time.
//
// Threads: as ObjectStore.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "store/object_store.h"

namespace fairlead {

// How long a copy stays. Then it is fetched anew, if somebody wants it.
inline constexpr Duration kCopyLifetime = std::chrono::hours(1);
// How long one question waits for an object that is being written.
inline constexpr Duration kFetchSlice = std::chrono::milliseconds(250);

// Other nodes' objects. Callbacks come later, on the io_context's thread.
class ObjectsElsewhere {
 public:
  virtual ~ObjectsElsewhere() = default;

  // Of one that has it. kNotFound: none of those that answered has; says who did not answer.
  virtual void find(const ObjectName& name, ObjectStore::Callback<ObjectInfo> done) = 0;
  // Brings a copy into this node's store. kDeadlineExceeded: it is being written there, and was not sealed within `patience`.
  virtual void fetch(const ObjectName& name, Duration patience, std::function<void(Status)> done) = 0;
  // From all that answer. kNotFound: none of them had it.
  virtual void remove(const ObjectName& name, std::function<void(Status)> done) = 0;
};

class ClusterObjectStore final : public ObjectStore {
 public:
  explicit ClusterObjectStore(std::unique_ptr<ObjectStore> here) : here_(std::move(here)) {}

  ObjectStore& here() { return *here_; }
  // Null: this node is alone. Outlives what it is asked for, or is taken back before.
  void set_elsewhere(ObjectsElsewhere* elsewhere) { elsewhere_ = elsewhere; }

  void create(const ObjectName& name, Bytes bytes, std::optional<Duration> lifetime, Callback<UniqueFd> done) override {
    here_->create(name, bytes, lifetime, std::move(done));
  }
  void seal(const ObjectName& name, Callback<ObjectInfo> done) override { here_->seal(name, std::move(done)); }
  void abandon(const ObjectName& name, Error why) override { here_->abandon(name, std::move(why)); }
  void put(const ObjectName& name, std::string bytes, std::optional<Duration> lifetime,
           Callback<ObjectInfo> done) override {
    here_->put(name, std::move(bytes), lifetime, std::move(done));
  }
  Status promise(const ObjectName& name, Bytes bytes, Fetch fetch, std::function<void()> gone) override {
    return here_->promise(name, bytes, std::move(fetch), std::move(gone));
  }
  Status expect(const ObjectName& name, Bytes bytes) override { return here_->expect(name, bytes); }
  Status reserve(const ObjectName& name) override { return here_->reserve(name); }
  void release(const ObjectName& name, Error why) override { here_->release(name, std::move(why)); }
  // Looks once whether another node has it.
  WatchId watch(const ObjectName& name, std::function<void(Status)> done) override;
  void unwatch(WatchId watch) override { here_->unwatch(watch); }
  void open_object(const ObjectName& name, Duration patience, Callback<OpenObject> done) override;
  Result<ObjectInfo> info(const ObjectName& name) const override { return here_->info(name); }
  std::vector<ObjectInfo> list(const std::string& tenant, const std::string& prefix, const std::string& after,
                               std::size_t limit) const override {
    return here_->list(tenant, prefix, after, limit);
  }
  Status remove(const ObjectName& name) override { return here_->remove(name); }
  void locate(const ObjectName& name, Callback<ObjectInfo> done) override;
  void remove_everywhere(const ObjectName& name, std::function<void(Status)> done) override;
  Result<std::string> content_dir(const std::string& tenant) override { return here_->content_dir(tenant); }
  Usage usage() const override { return here_->usage(); }

 private:
  struct Reader {
    Instant until;
    Callback<OpenObject> done;
  };
  bool is_to_be_asked_for(const ObjectName& name) const;
  void fetch(const ObjectName& name);
  void go_on_waiting(const ObjectName& name, const Error& why);
  void fetched(const ObjectName& name, const Status& status);

  const std::unique_ptr<ObjectStore> here_;
  ObjectsElsewhere* elsewhere_ = nullptr;
  std::map<ObjectName, std::vector<Reader>> fetching_;
};

}  // namespace fairlead

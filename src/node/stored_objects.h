// The node's objects as device servers see them: those of the object store, and constants that came with one-off requests.
//
// Threads: not thread-safe; owned by the core thread.
#pragma once

#include <boost/asio/io_context.hpp>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "node/memory_file.h"
#include "runtime/device_servers/device_servers.h"
#include "store/object_store.h"

namespace fairlead {

// A constant that came with a request: in no store, under a key that names its content.
struct LentObject {
  std::string key;
  std::string content;  // as the object store names it: what is equal is on a device once
  std::int64_t created_ms = 0;
  std::shared_ptr<const MemoryFile> file;  // shared with who is opening it
};

class StoredObjects final : public ObjectSource {
 public:
  StoredObjects(boost::asio::io_context& io, ObjectStore& store) : io_(io), store_(store) {}

  // Device servers of the tenant find it by its key, before any in the store, for as long as somebody else owns it.
  void lend(const std::string& tenant, const std::shared_ptr<const LentObject>& object);

  std::optional<Known> look_up(const ObjectKey& name) override;
  void open(const ObjectKey& name, Duration patience, std::function<void(Result<Opened>)> done) override;
  Status expect(const ObjectKey& name, Bytes bytes) override;
  Status promise(const ObjectKey& name, Bytes bytes, Fetch fetch, std::function<void()> gone) override;
  void abandon(const ObjectKey& name, Error why) override;

 private:
  std::shared_ptr<const LentObject> lent(const ObjectKey& name) const;

  boost::asio::io_context& io_;
  ObjectStore& store_;
  std::map<ObjectKey, std::vector<std::weak_ptr<const LentObject>>> lent_;  // two requests may bring the same
};

}  // namespace fairlead

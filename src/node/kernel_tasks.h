// Functions that are kernel tasks: read and checked from their bundles or from one-off requests, and the node's objects as
// device servers see them.
#pragma once

#include <boost/asio/io_context.hpp>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "model/kernel_task_request.h"
#include "node/memory_file.h"
#include "runtime/device_servers/device_servers.h"
#include "store/object_store.h"

namespace fairlead {

// A constant that came with the code: an object of this key, which names its content.
struct BundledConstant {
  std::string key;
  std::string file;
  Bytes bytes{0};
};
// A constant that came with a request: in no store, under a key that names its content.
struct LentObject {
  std::string key;
  std::string content;  // as the object store names it: what is equal is on a device once
  std::int64_t created_ms = 0;
  std::shared_ptr<const MemoryFile> file;  // shared with who is opening it
};
struct BundledTask {
  std::shared_ptr<const KernelTaskSpec>
      spec;  // shared with sessions; of a request, it keeps what is lent and the modules
  std::vector<BundledConstant> constants;
  std::vector<std::shared_ptr<const LentObject>> lent;
};

// Whether the bundle's top level has task.json and no bootstrap.
bool is_kernel_task(const std::string& code_path);
// Reads files: for a worker. Whatever can be said before a device is there is an error here; it names file and place.
Result<BundledTask> read_kernel_task(const std::string& code_path);
// The same of a request, whose files stay in memory. Writes them: for a worker. REQUIRES: validate_request().
Result<BundledTask> read_requested_task(const KernelTaskRequest& request);

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

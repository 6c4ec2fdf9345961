// Functions that are kernel tasks: read and checked from their bundles, and the node's objects as device servers see them.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "runtime/device_server/device_servers.h"
#include "store/object_store.h"

namespace fairlead {

// A constant that came with the code: an object of this key, which names its content.
struct BundledConstant {
  std::string key;
  std::string file;
  Bytes bytes{0};
};
struct BundledTask {
  std::shared_ptr<const KernelTaskSpec> spec;
  std::vector<BundledConstant> constants;
};

// Whether the bundle's top level has task.json and no bootstrap.
bool is_kernel_task(const std::string& code_path);
// Reads files: for a worker. Whatever can be said before a device is there is an error here; it names file and place.
Result<BundledTask> read_kernel_task(const std::string& code_path);

class StoredObjects final : public ObjectSource {
 public:
  explicit StoredObjects(ObjectStore& store) : store_(store) {}

  std::optional<Known> look_up(const ObjectKey& name) override;
  void open(const ObjectKey& name, Duration patience, std::function<void(Result<Opened>)> done) override;
  Status expect(const ObjectKey& name) override;
  Status promise(const ObjectKey& name, Bytes bytes, Fetch fetch) override;
  void abandon(const ObjectKey& name, Error why) override;

 private:
  ObjectStore& store_;
};

}  // namespace fairlead

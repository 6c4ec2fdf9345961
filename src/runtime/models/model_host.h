// Models on the GPUs of a node: a socket in every sandbox, a store for each GPU that decides (decide/residency/model_store.h),
// and a model server for each GPU that has the memory, started by the first program that stores something and ended when
// nothing is left.
//
//   program ──OPEN──> node ──create──> model server           descriptors of blocks go the other way
//
// The node keeps the descriptors of all blocks, so that a model which is there is given without the server's help.
//
// Threads: everything on the io_context's thread. Events run on it, never from inside a call of this class.
#pragma once

#include <boost/asio/io_context.hpp>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "base/units.h"
#include "decide/residency/model_store.h"
#include "runtime/launcher.h"

namespace fairlead {

struct ModelHostOptions {
  std::vector<std::string> server;  // program and arguments of a model server
  Launcher launcher = {};           // of model servers
  std::string socket_dir;           // exists
  int memory_percent = 50;          // of a GPU's memory, for models
  int tenant_percent = 50;          // of that, for one tenant
};

struct ModelTerms {
  ModelUser user;
  GpuId gpu;
  Bytes device_memory{0};                          // of the GPU
  std::map<std::string, std::string> environment;  // of its model server
};

struct ModelEvents {
  // The device is full where a program stores: as of the shim (ShimEvents). Answered by grant_room(). May be empty.
  std::function<void(InstanceId, std::uint64_t request, Bytes)> needs_room;
};

class ModelHost {
 public:
  // Requests for room have this bit, and those of shims have not.
  static constexpr std::uint64_t kRoomRequest = std::uint64_t{1} << 63;

  ModelHost(boost::asio::io_context& io, ModelHostOptions options, ModelEvents events);
  ~ModelHost();

  // Call before the instance starts. Gives its socket, on the host.
  Result<std::string> add(ModelTerms terms);
  // The instance is gone, all its processes are dead.
  void remove(InstanceId instance);
  // That version of a function is not there any more.
  void scope_gone(const std::string& scope);
  // The tags of its function say this now: it counts from the next open on.
  void consent_changed(const std::string& scope, const std::set<std::string>& lends_to,
                       const std::set<std::string>& uses_from);
  void grant_room(std::uint64_t request, bool granted);

  // Drops models that nobody uses, until so much is free or none is left. done(): what was freed, once it is; later, and not
  // after the end of this class.
  void evict(GpuId gpu, Bytes bytes, std::function<void(Bytes)> done);

  struct View {
    GpuId gpu;
    pid_t pid = 0;  // of its server; 0: none runs
    std::uint64_t restarts = 0;
    std::uint64_t memory = 0;  // that models may take
    ModelStoreUse use;
  };
  std::vector<View> views() const;

 private:
  class Gpu;
  class Instance;

  boost::asio::io_context& io_;
  const ModelHostOptions options_;
  const ModelEvents events_;
  std::uint64_t last_holder_ = 0;
  std::uint64_t last_room_ = 0;
  std::map<GpuId, std::unique_ptr<Gpu>> gpus_;
  std::map<InstanceId, std::unique_ptr<Instance>> instances_;  // after the GPUs: they use them
};

}  // namespace fairlead

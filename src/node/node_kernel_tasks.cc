// Kernel tasks: their sessions in device servers, and the constants that came with their code.
#include <boost/asio/post.hpp>
#include <fstream>
#include <iterator>
#include <utility>

#include "base/log.h"
#include "model/tenant.h"
#include "node/node.h"

namespace fairlead {

void Node::make_device_servers() {
  stored_objects_ = std::make_unique<StoredObjects>(io_, *objects_);
  device_servers_ = std::make_unique<DeviceServers>(io_, options_.device_servers, *stored_objects_, instance_events());
}

// The environment is the server's, which its first session starts: the GPU's, and this process's own where the loader
// looks. What the author set is for programs.
void Node::start_kernel_task(const StartInstance& action, const RegisteredFunction& function) {
  const std::shared_ptr<const BundledTask> task = function.kernel_task;
  InstanceSpec shared{.instance = action.instance, .function = function.record.name};
  shared.environment = options_.gpu_access.environment;
  sharing_->give_share(shared, action.gpu, GpuSettings());
  SessionSpec spec{.instance = action.instance,
                   .gpu = action.gpu,
                   .tenant = tenant_of(function.record.config.tags),
                   .task = task->spec,
                   .environment = std::move(shared.environment)};
  const std::string tenant = spec.tenant;
  put_constants(task, tenant, 0, [this, spec = std::move(spec)](Status put) mutable {
    const InstanceId instance = spec.instance;
    if (!put)
      return on_gone(instance,
                     ExitInfo{.exit_status = 1, .signal = {}, .reason = put.error().message, .init_error_payload = {}});
    if (!instances_.contains(instance)) {  // stopped meanwhile
      return on_gone(instance, ExitInfo{.exit_status = 1, .signal = {}, .reason = "stopped", .init_error_payload = {}});
    }
    device_servers_->start(std::move(spec));
  });
}

// Those that the data layer does not have, one after the other.
void Node::put_constants(std::shared_ptr<const BundledTask> task, const std::string& tenant, std::size_t from,
                         std::function<void(Status)> done) {
  const auto is_there = [&](const BundledConstant& constant) {
    const auto info = objects_->info({tenant, constant.key});
    return info && (info->state == ObjectState::kSealed || info->state == ObjectState::kSpilled);
  };
  while (from < task->constants.size() && is_there(task->constants[from])) ++from;
  if (from == task->constants.size()) return boost::asio::post(io_, [done = std::move(done)] { done({}); });
  const auto read = [file = task->constants[from].file] {
    std::ifstream stream(file, std::ios::binary);
    return std::string((std::istreambuf_iterator<char>(stream)), std::istreambuf_iterator<char>());
  };
  worker_->run(read, [this, task, tenant, from, done = std::move(done)](std::string bytes) mutable {
    objects_->put({tenant, task->constants[from].key}, std::move(bytes), std::nullopt,
                  [this, task, tenant, from, done = std::move(done)](Result<ObjectInfo> put) mutable {
                    // Another session may be putting it: then it is pending, and the session waits for it.
                    if (!put && put.error().code != Errc::kAlreadyExists) return done(fail(put.error()));
                    put_constants(task, tenant, from + 1, std::move(done));
                  });
  });
}

}  // namespace fairlead

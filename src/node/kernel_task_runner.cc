#include "node/kernel_task_runner.h"

#include <boost/asio/post.hpp>
#include <utility>

#include "base/read_file.h"
#include "model/cut_tag.h"
#include "model/tenant.h"

namespace fairlead {
namespace {

// Sets numbers of sessions' pages apart from those of programs' processes.
constexpr std::uint64_t kOfSession = std::uint64_t{1} << 63;

// An author who says gpu:compute-percent=100 has the device alone, however few SMs his kernels are on.
bool says_width(const FunctionConfig& config) {
  const auto settings = gpu_settings(config);
  return settings && settings->share.width_percent.has_value();
}

}  // namespace

KernelTaskRunner::KernelTaskRunner(boost::asio::io_context& io, KernelTaskRunnerOptions options, ObjectStore& objects,
                                   Worker& worker, GpuPacers& pacers, InstanceEvents events)
    : io_(io),
      options_(std::move(options)),
      objects_(objects),
      worker_(worker),
      pacers_(pacers),
      gone_([this, gone = events.gone](InstanceId instance, ExitInfo exit) {
        pacers_.gone(instance);
        as_wide_as_said_.erase(instance);
        gone(instance, std::move(exit));
      }),
      stored_objects_(io, objects),
      servers_(io, servers_options(), stored_objects_, paced(std::move(events))) {}

DeviceServersOptions KernelTaskRunner::servers_options() {
  DeviceServersOptions options = options_.servers;
  options.pace.came = [this](InstanceId instance, std::uint64_t number, std::shared_ptr<wire::ShimPage> page,
                             PaceCalls::LetIn let_in) {
    pacers_.process_came(instance, number | kOfSession, std::move(page), std::move(let_in));
  };
  options.pace.sized = [this](InstanceId instance, std::uint64_t server, int width_percent) {
    pacers_.size(instance, {server, as_wide_as_said_.contains(instance) ? kWholeDevice : width_percent});
  };
  options.pace.left = [this](std::uint64_t number) { pacers_.process_left(number | kOfSession); };
  return options;
}

InstanceEvents KernelTaskRunner::paced(InstanceEvents events) {
  events.gone = gone_;
  return events;
}

// The environment is the server's, which its first session starts: the GPU's, and this process's own where the loader
// looks. What the author set is for programs.
void KernelTaskRunner::start(const StartOrder& order) {
  const FunctionRecord& record = order.function.record;
  const std::shared_ptr<const BundledTask> task = order.function.kernel_task;
  InstanceSpec shared{.instance = order.instance, .function = record.name};
  shared.environment = options_.environment;
  give_share_(shared, order.gpu, Share());
  SessionSpec spec{.instance = order.instance,
                   .gpu = order.gpu,
                   .tenant = tenant_of(record.config.tags),
                   .task = task->spec,
                   .environment = std::move(shared.environment),
                   .whole_kernels = !may_cut_kernels(record.config.tags).value_or(true),
                   .most_width_percent = order.share.width_percent};
  const std::string tenant = spec.tenant;
  pacers_.started(order.instance, order.gpu, order.share);
  if (says_width(record.config)) as_wide_as_said_.insert(order.instance);
  putting_constants_.insert(order.instance);
  put_constants(task, tenant, 0, [this, spec = std::move(spec)](Status put) mutable {
    const bool is_wanted = putting_constants_.erase(spec.instance) > 0;
    if (!put) return end_start(spec.instance, put.error().message);
    if (!is_wanted) return end_start(spec.instance, "stopped");
    servers_.start(std::move(spec));
  });
}

void KernelTaskRunner::end_start(InstanceId instance, const std::string& why) {
  gone_(instance, ExitInfo{.exit_status = 1, .signal = {}, .reason = why, .init_error_payload = {}});
}

// Those that the data layer does not have, one after the other.
void KernelTaskRunner::put_constants(std::shared_ptr<const BundledTask> task, const std::string& tenant,
                                     std::size_t from, std::function<void(Status)> done) {
  const auto is_there = [&](const BundledConstant& constant) {
    const auto info = objects_.info({tenant, constant.key});
    return info && (info->state == ObjectState::kSealed || info->state == ObjectState::kSpilled);
  };
  while (from < task->constants.size() && is_there(task->constants[from])) ++from;
  if (from == task->constants.size()) return boost::asio::post(io_, [done = std::move(done)] { done({}); });
  const auto read = [file = task->constants[from].file] { return read_whole_file(file); };
  worker_.run(read, [this, task, tenant, from, done = std::move(done)](Result<std::string> bytes) mutable {
    if (!bytes) return done(fail(bytes.error()));
    objects_.put({tenant, task->constants[from].key}, *std::move(bytes), std::nullopt,
                 [this, task, tenant, from, done = std::move(done)](Result<ObjectInfo> put) mutable {
                   // Another session may be putting it: then it is pending, and the session waits for it.
                   if (!put && put.error().code != Errc::kAlreadyExists) return done(fail(put.error()));
                   put_constants(task, tenant, from + 1, std::move(done));
                 });
  });
}

void KernelTaskRunner::deliver(InstanceId instance, DeliverRequest request) {
  servers_.deliver(instance, std::move(request));
}

void KernelTaskRunner::kill(InstanceId instance) {
  putting_constants_.erase(instance);
  servers_.kill(instance);
}

std::optional<DeviceUse> KernelTaskRunner::use(InstanceId instance) {
  const auto use = servers_.use(instance);
  if (!use) return std::nullopt;
  DeviceUse as_one;
  as_one.memory.held = as_one.memory.resident = as_one.memory.fixed = use->device;
  as_one.gpu_time = use->gpu_time;
  return as_one;
}

}  // namespace fairlead

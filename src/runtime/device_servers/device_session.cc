#include "runtime/device_servers/device_session.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>
#include <utility>

#include "wire/kernel_task_codec.h"

namespace fairlead {

std::vector<BoundPtr> bind_constants(const SessionSpec& spec) {
  const KernelTask& task = spec.task->task;
  std::vector<BoundPtr> constants;
  for (std::uint32_t b = 0; b < task.buffers.size(); ++b) {
    const BufferSpec& buffer = task.buffers[b];
    if (buffer.role != BufferRole::kConstant) continue;
    constants.push_back(std::make_shared<BoundObject>(b, ObjectKey{spec.tenant, buffer.constant}, "", 0, buffer.bytes));
  }
  return constants;
}

Result<FrameWithMemory<wire::RegisterSession>> registration_of(DeviceSession& session) {
  const KernelTaskSpec& spec = *session.spec.task;
  FrameWithMemory<wire::RegisterSession> sent;
  sent.frame = {.session = session.instance.value(), .tenant = session.spec.tenant, .task = wire::encode(spec.task)};
  // Blocks that wait for each other need all SMs that they are made for.
  if (!session.spec.whole_kernels) {
    sent.frame.most_width_percent = static_cast<std::uint32_t>(session.spec.most_width_percent);
  }
  const auto travels = [&sent](UniqueFd file) {
    sent.descriptors.push_back(file.get());
    sent.memory.push_back(std::move(file));
    return static_cast<std::int32_t>(sent.descriptors.size() - 1);
  };
  for (std::size_t m = 0; m < spec.module_files.size(); ++m) {
    UniqueFd file(::open(spec.module_files[m].c_str(), O_RDONLY | O_CLOEXEC));
    struct stat info {};
    if (!file || ::fstat(file.get(), &info) != 0) return fail(errno_error(errno, "open " + spec.module_files[m]));
    sent.frame.modules.push_back({.sha256 = spec.task.modules[m].sha256,
                                  .bytes = static_cast<std::uint64_t>(info.st_size),
                                  .descriptor = travels(std::move(file))});
  }
  for (const BoundPtr& bound : session.constants) {
    sent.frame.constants.push_back({.buffer = bound->buffer, .object = bound->object, .bytes = {}});
    if (!bound->memory) continue;
    sent.frame.supplied.push_back(
        {bound->object, static_cast<std::uint64_t>(bound->size.count()), travels(std::move(bound->memory))});
  }
  return sent;
}

SessionMemory memory_of(const DeviceSession& session) {
  const KernelTask& task = session.spec.task->task;
  SessionMemory memory{.server = session.server->number, .device = session.server->memory};
  for (const BufferSpec& buffer : task.buffers) {
    if (buffer.role != BufferRole::kConstant) memory.call += buffer.bytes;
  }
  for (const BoundPtr& bound : session.constants) {
    memory.constants.emplace_back(bound->object, task.buffers[bound->buffer].bytes);
  }
  return memory;
}

}  // namespace fairlead

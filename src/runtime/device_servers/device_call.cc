#include "runtime/device_servers/device_call.h"

#include <utility>

#include "wire/kernel_task_codec.h"

namespace fairlead {
namespace {

const CallBinding* binding_of(const std::vector<CallBinding>& bindings, std::uint32_t buffer) {
  for (const CallBinding& binding : bindings) {
    if (binding.buffer == buffer) return &binding;
  }
  return nullptr;
}

}  // namespace

Result<DeviceCall> read_call(std::shared_ptr<const KernelTaskSpec> spec, InstanceId instance, const std::string& tenant,
                             const DeliverRequest& request, Instant now, Duration patience) {
  const KernelTask& task = spec->task;
  DeviceCall call{.invocation = request.id, .instance = instance};
  call.tenant = tenant;
  call.request_id = request.invocation.request_id;
  call.begun = now;
  call.deadline = now + patience;
  call.binary = wire::is_binary(request.invocation.payload);
  auto read = call.binary ? wire::decode_kernel_task_call(request.invocation.payload)
                          : wire::kernel_task_call_from_json(task, request.invocation.payload);
  if (!read) return fail(read.error());
  if (Status valid = validate_call(task, *read); !valid) return fail(valid.error());
  for (CallBinding& input : read->inputs) {
    call.inputs.push_back(std::make_shared<BoundObject>(input.buffer, ObjectKey{tenant, std::move(input.key)},
                                                        std::move(input.bytes), 0, task.buffers[input.buffer].bytes));
  }
  for (std::uint32_t b = 0; b < task.buffers.size(); ++b) {
    const BufferSpec& buffer = task.buffers[b];
    if (buffer.role != BufferRole::kOutput && buffer.role != BufferRole::kInOut) continue;
    const CallBinding* bound = binding_of(read->outputs, b);
    call.outputs.push_back(
        std::make_shared<BoundObject>(b, ObjectKey{tenant, bound != nullptr ? bound->key : ""}, "", 0, buffer.bytes));
  }
  call.spec = std::move(spec);
  return call;
}

Status reserve_outputs(ObjectSource& objects, DeviceCall& call) {
  for (std::size_t i = 0; i < call.outputs.size(); ++i) {
    if (call.outputs[i]->name.key.empty()) continue;
    Status expected = objects.expect(call.outputs[i]->name, call.outputs[i]->size);
    if (expected) continue;
    call.outputs.resize(i);
    abandon_outputs(objects, call, "its task failed: " + expected.error().message);
    return expected;
  }
  return {};
}

void abandon_outputs(ObjectSource& objects, const DeviceCall& call, const std::string& why) {
  for (const BoundPtr& output : call.outputs) {
    if (!output->name.key.empty()) objects.abandon(output->name, {Errc::kUnavailable, why});
  }
}

FrameWithMemory<wire::RunCall> frame_of(DeviceCall& call, const std::vector<BoundPtr>& constants,
                                        ObjectOpener& numbers) {
  FrameWithMemory<wire::RunCall> sent;
  sent.frame = {.call = call.invocation.value(), .session = call.instance.value()};
  const auto supply = [&sent](BoundObject& bound) {
    if (!bound.memory) return;
    sent.frame.supplied.push_back({bound.object, static_cast<std::uint64_t>(bound.size.count()),
                                   static_cast<std::int32_t>(sent.descriptors.size())});
    sent.descriptors.push_back(bound.memory.get());
    sent.memory.push_back(std::move(bound.memory));
  };
  for (const BoundPtr& input : call.inputs) {
    sent.frame.inputs.push_back({.buffer = input->buffer, .object = input->object, .bytes = input->bytes});
    supply(*input);
  }
  for (const BoundPtr& constant : constants) supply(*constant);
  for (const BoundPtr& output : call.outputs) {
    output->object = output->name.key.empty() ? 0 : numbers.next_number();
    sent.frame.outputs.push_back({.buffer = output->buffer, .object = output->object, .bytes = {}});
  }
  return sent;
}

}  // namespace fairlead

#include "runtime/device_server/task_call.h"

#include <algorithm>
#include <cstring>
#include <span>

namespace fairlead {
namespace {

std::uint64_t size_of(const BufferSpec& buffer) {
  return static_cast<std::uint64_t>(buffer.bytes.count());
}

// In-outs, inline inputs and zeros, on the call's own stream.
CUresult queue_inputs(const TaskCall& call, CudaContext& cuda, const DeviceObjects& objects,
                      std::span<const CUdeviceptr> addresses) {
  const std::vector<BufferSpec>& buffers = call.session->kernels->task().buffers;
  const CUstream stream = call.lane->main();
  CUresult code = CUDA_SUCCESS;
  for (const CallLayout::Copy& copy : call.layout.copies) {
    if (code != CUDA_SUCCESS) return code;
    const CUdeviceptr source = objects.address(ObjectId(copy.object));
    code = cuda.copy_within(addresses[copy.buffer], source, size_of(buffers[copy.buffer]), stream);
  }
  auto staged = call.layout.inputs.begin();  // the inline ones of the call, in its order
  for (const wire::BoundObject& input : call.order.inputs) {
    if (input.object != 0) continue;
    if (code != CUDA_SUCCESS) return code;
    char* const staging = call.staging.data + staged->staging_offset;
    std::memcpy(staging, input.bytes.data(), input.bytes.size());
    code = cuda.copy_in(addresses[input.buffer], staging, input.bytes.size(), stream);
    ++staged;
  }
  for (std::size_t b = 0; b < buffers.size() && code == CUDA_SUCCESS; ++b) {
    if (buffers[b].zeroed) code = cuda.fill_zero(addresses[b], size_of(buffers[b]), stream);
  }
  return code;
}

CUresult queue_outputs(const TaskCall& call, CudaContext& cuda, std::span<const CUdeviceptr> addresses) {
  for (const CallLayout::Staged& output : call.layout.outputs) {
    char* const staging = call.staging.data + output.staging_offset;
    const CUresult code = cuda.copy_out(staging, addresses[output.buffer], output.bytes, call.lane->main());
    if (code != CUDA_SUCCESS) return code;
  }
  return CUDA_SUCCESS;
}

CUresult await_rings(const TaskCall& call, const StageRings& rings) {
  CUresult code = CUDA_SUCCESS;
  for (const wire::RingSlot& slot : call.order.ring_inputs) {
    if (code == CUDA_SUCCESS) code = rings.wait_first(slot, call.lane->main());
  }
  return code;
}

CUresult read_rings(const TaskCall& call, const StageRings& rings, std::span<const CUdeviceptr> addresses) {
  CUresult code = CUDA_SUCCESS;
  for (const wire::RingSlot& slot : call.order.ring_inputs) {
    if (code == CUDA_SUCCESS) code = rings.read(slot, addresses[slot.buffer], call.lane->main());
  }
  return code;
}

CUresult write_rings(const TaskCall& call, const StageRings& rings, std::span<const CUdeviceptr> addresses) {
  CUresult code = CUDA_SUCCESS;
  for (const wire::RingSlot& slot : call.order.ring_outputs) {
    if (code == CUDA_SUCCESS) code = rings.write(slot, addresses[slot.buffer], call.lane->main());
  }
  return code;
}

}  // namespace

std::vector<CUdeviceptr> addresses_of(const TaskCall& call, const DeviceObjects& objects) {
  const CUdeviceptr scratch = objects.address(call.scratch);
  std::vector<CUdeviceptr> addresses;
  addresses.reserve(call.layout.places.size());
  for (const CallLayout::Place& place : call.layout.places) {
    addresses.push_back(place.object != 0 ? objects.address(ObjectId(place.object)) : scratch + place.scratch_offset);
  }
  return addresses;
}

std::vector<std::uint64_t> find_needs(TaskCall& call, const DeviceObjects& objects) {
  const std::vector<BufferSpec>& buffers = call.session->kernels->task().buffers;
  std::vector<std::uint64_t> missing;
  call.needs.clear();
  const auto add = [&](const wire::BoundObject& bound, ObjectKind kind) {
    if (bound.object == 0) return;
    const ObjectId id(bound.object);
    if (kind != ObjectKind::kOutput && !objects.available(id)) missing.push_back(bound.object);
    call.needs.push_back({id, buffers[bound.buffer].bytes, kind});
  };
  for (const auto& bound : call.session->constants) add(bound, ObjectKind::kConstant);
  for (const auto& bound : call.order.inputs) add(bound, ObjectKind::kInput);
  for (const auto& bound : call.order.outputs) add(bound, ObjectKind::kOutput);
  std::ranges::stable_sort(call.needs, {}, &ObjectNeed::object);
  const auto same = std::ranges::unique(call.needs, {}, &ObjectNeed::object);
  call.needs.erase(same.begin(), same.end());
  return missing;
}

CUresult queue_before(const TaskCall& call, CudaContext& cuda, DeviceObjects& objects, const StageRings& rings,
                      HostCall told) {
  const CUstream stream = call.lane->main();
  CUresult code = CUDA_SUCCESS;
  const auto check = [&code](CUresult result) {
    if (code == CUDA_SUCCESS) code = result;
  };
  check(objects.wait(stream, call.needs, call.scratch, call.times.load));
  const std::vector<CUdeviceptr> addresses = addresses_of(call, objects);
  check(await_rings(call, rings));
  check(cuda.record(call.times.begin, stream));
  if (call.loads) check(cuda.call_host(stream, told.function, told.data));
  check(queue_inputs(call, cuda, objects, addresses));
  if (code == CUDA_SUCCESS) check(read_rings(call, rings, addresses));
  check(cuda.record(call.times.run_begin, stream));
  return code;
}

CUresult queue_behind(const TaskCall& call, CudaContext& cuda, DeviceObjects& objects, const StageRings& rings) {
  const CUstream stream = call.lane->main();
  const std::vector<CUdeviceptr> addresses = addresses_of(call, objects);
  CUresult code = cuda.record(call.times.run_end, stream);
  if (code == CUDA_SUCCESS) code = write_rings(call, rings, addresses);
  if (code == CUDA_SUCCESS) code = queue_outputs(call, cuda, addresses);
  if (code == CUDA_SUCCESS) code = cuda.record(call.times.done, stream);
  return code;
}

CUresult queue_call(const TaskCall& call, CudaContext& cuda, DeviceObjects& objects, const StageRings& rings,
                    HostCall told) {
  CUresult code = queue_before(call, cuda, objects, rings, told);
  if (code == CUDA_SUCCESS) code = call.session->kernels->launch(cuda, *call.lane, addresses_of(call, objects));
  return code == CUDA_SUCCESS ? queue_behind(call, cuda, objects, rings) : code;
}

void describe_success(const TaskCall& call, const CudaContext& cuda, const DeviceObjects& objects, Instant now,
                      wire::CallDone& done) {
  for (const CallLayout::Staged& output : call.layout.outputs) {
    done.outputs.push_back(
        {.buffer = output.buffer, .object = 0, .bytes = {call.staging.data + output.staging_offset, output.bytes}});
  }
  // Between its pieces the device worked for others.
  const Duration run = call.steps.there ? call.steps.used : cuda.elapsed(call.times.run_begin, call.times.run_end);
  Duration copy = cuda.elapsed(call.times.begin, call.times.run_begin);
  copy += objects.copies().elapsed(call.times.load);
  copy += cuda.elapsed(call.times.run_end, call.times.done);
  done.phases.kernel_run = run;
  done.phases.device_copy = copy;
  done.phases.device_malloc = call.malloc_time;
  const Duration whole = now - call.received;
  done.phases.overhead = std::max(Duration(0), whole - run - copy - call.malloc_time);
  done.gpu_ns = (run + copy).count();
}

}  // namespace fairlead

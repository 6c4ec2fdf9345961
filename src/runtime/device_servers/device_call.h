// A call of a kernel task, from its payload to its frame: what it binds, which outputs it reserves, and what its process is told.
//
//   read_call ──> reserve (keys of its outputs exist from now on) ──> inputs opened ──> frame_of ──> answered, or abandoned
//
// Example: payload {"inputs": {"x": "obj"}, "outputs": {"y": "sum"}}: one bound input, obj, of as many bytes as buffer x has; one output, sum,
// which is reserved before the call runs. A second call with the output sum is refused before it runs.
//
// Threads: none of its own.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/units.h"
#include "model/kernel_task.h"
#include "runtime/device_servers/bound_object.h"
#include "runtime/instance_host.h"
#include "wire/device_frames.h"

namespace fairlead {

// A kernel task as its bundle has it.
struct KernelTaskSpec {
  KernelTask task;
  std::vector<std::string> module_files;  // of task.modules, on this machine
};

struct DeviceCall {
  InvocationId invocation;
  InstanceId instance;
  std::string tenant;
  std::string request_id;
  bool binary = false;
  std::shared_ptr<const KernelTaskSpec> spec;
  std::vector<BoundPtr> inputs;
  std::vector<BoundPtr> outputs;
  std::vector<BoundPtr> lost_constants;  // to be opened with its inputs
  std::size_t opening = 0;
  std::uint64_t openings = 0;  // of its inputs, begun so far
  Instant begun;
  Duration data_layer{0};
  Instant deadline;
  std::size_t keeping = 0;  // outputs whose bytes are on their way to the data layer
};

// kInvalidArgument, naming the field: the payload is no call of that task. `patience`: until its deadline.
Result<DeviceCall> read_call(std::shared_ptr<const KernelTaskSpec> spec, InstanceId instance, const std::string& tenant,
                             const DeliverRequest& request, Instant now, Duration patience);

// Keys of its outputs exist from now on, as references: a call with a key that is taken fails before it runs. Where one is refused, none
// is reserved.
Status reserve_outputs(ObjectSource& objects, DeviceCall& call);
void abandon_outputs(ObjectSource& objects, const DeviceCall& call, const std::string& why);

// A frame with the descriptors that travel with it; `memory` keeps them open until it is sent.
template <typename Frame>
struct FrameWithMemory {
  Frame frame;
  std::vector<int> descriptors;
  std::vector<UniqueFd> memory;
};
// Its outputs have the numbers that they are given here.
FrameWithMemory<wire::RunCall> frame_of(DeviceCall& call, const std::vector<BoundPtr>& constants,
                                        ObjectOpener& numbers);

}  // namespace fairlead

// Modules of a device server that serves several tenants: each is rewritten for its tenant's range of addresses before the
// driver sees it (src/fence), and refused where that cannot be done. The same module of two tenants is two.
//
// Threads: the device server's loop.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "model/kernel_task.h"
#include "runtime/device_server/device_objects.h"

namespace fairlead {

class FencedModules {
 public:
  FencedModules(CudaContext& cuda, DeviceObjects& objects) : cuda_(cuda), objects_(objects) {}

  // PTX for the driver; its variables are in the range, with their initial values. kInvalidArgument: the image has no PTX
  // for this device, or the fence's words; kTooLarge, kResourceExhausted: no room for its variables.
  // The task's arguments must fit signatures() of what came out: the driver reads as many bytes as that says.
  // `key` names it until it is forgotten, also where the result is an error.
  Result<std::string> fence(Instant now, DeviceObjects::RangeIndex range, const std::string& key,
                            const std::string& image);
  // REQUIRES: fenced before.
  const std::vector<KernelSignature>& signatures(const std::string& key) const { return modules_.at(key).kernels; }
  // It is not loaded any more, or was not: the room of its variables is for the next module of its range.
  void forget(const std::string& key);

 private:
  struct Variables {
    CUdeviceptr address = 0;
    std::uint64_t bytes = 0;
  };
  struct Module {
    DeviceObjects::RangeIndex range = 0;
    Variables variables;
    std::vector<KernelSignature> kernels;
  };
  Result<Variables> take_room(Instant now, DeviceObjects::RangeIndex range, std::uint64_t bytes);
  std::optional<Variables> take_left_room(DeviceObjects::RangeIndex range, std::uint64_t bytes, std::uint64_t most);
  Result<std::string> take_kernels(Module& module, std::string ptx);

  CudaContext& cuda_;
  DeviceObjects& objects_;
  std::map<std::string, Module> modules_;
  // Room that forgotten modules left, by its bytes.
  std::map<DeviceObjects::RangeIndex, std::multimap<std::uint64_t, CUdeviceptr>> left_;
};

}  // namespace fairlead

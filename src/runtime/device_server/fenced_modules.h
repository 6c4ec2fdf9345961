// Modules of a device server that serves several tenants: each is rewritten for its tenant's range of addresses before the
// driver sees it (src/fence), and refused where that cannot be done. The same module of two tenants is two.
//
// Threads: the device server's loop.
#pragma once

#include <map>
#include <string>
#include <utility>
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
  Result<std::string> fence(Instant now, DeviceObjects::RangeIndex range, const std::string& sha256,
                            const std::string& image);
  // REQUIRES: fenced before.
  const std::vector<KernelSignature>& signatures(DeviceObjects::RangeIndex range, const std::string& sha256) const {
    return modules_.at({range, sha256}).kernels;
  }

 private:
  struct Module {
    CUdeviceptr variables = 0;
    std::vector<KernelSignature> kernels;
  };
  Result<std::string> take_kernels(Module& module, std::string ptx);

  CudaContext& cuda_;
  DeviceObjects& objects_;
  // Of modules that the driver refused too: a tenant that tries again takes no more room.
  std::map<std::pair<DeviceObjects::RangeIndex, std::string>, Module> modules_;
};

}  // namespace fairlead

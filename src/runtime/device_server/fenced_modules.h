// Modules of a device server that serves several tenants: each is rewritten for its tenant's range of addresses before the
// driver sees it (src/gpu/fence), and refused where that cannot be done. The same module of two tenants is two.
//
// Rewriting reads what strangers wrote, so that it is done by the process that tries modules (module_trial.h); this process
// says where the variables are. Without trials it does all of it.
//
//   measure_image ─> place ─> fence_image ─> accept        measure_image and fence_image: no state, any process
//
// Threads: the device server's loop.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "gpu/fence/fence.h"
#include "model/kernel_task.h"
#include "runtime/device_server/device_objects.h"
#include "runtime/device_server/variable_bytes.h"

namespace fairlead {

struct FencedCode {
  std::string ptx;           // for the driver
  VariablePieces variables;  // their initial bytes
};
// kInvalidArgument: the image has no PTX for the architecture, or the fence's words.
Result<std::uint64_t> measure_image(const std::string& image, std::uint32_t architecture,
                                    const fence::FenceOptions& options);
Result<FencedCode> fence_image(const std::string& image, std::uint32_t architecture,
                               const fence::FenceOptions& options);

class FencedModules {
 public:
  FencedModules(CudaContext& cuda, DeviceObjects& objects) : cuda_(cuda), objects_(objects) {}

  // Of the range's modules, but for where their variables are.
  fence::FenceOptions options_of(DeviceObjects::RangeIndex range) const;
  // Room for a module's variables: its address, 0 where it has none. kTooLarge, kResourceExhausted: no room.
  // `key` names the module until it is forgotten, also where the result is an error.
  Result<CUdeviceptr> place(Instant now, DeviceObjects::RangeIndex range, const std::string& key,
                            std::uint64_t variable_bytes);
  // PTX for the driver; its variables are in the range, with their initial values. The task's arguments must fit
  // signatures() of it: the driver reads as many bytes as that says. REQUIRES: placed.
  Result<std::string> accept(const std::string& key, FencedCode code);
  // All of it in this process.
  Result<std::string> fence(Instant now, DeviceObjects::RangeIndex range, const std::string& key,
                            const std::string& image);
  // REQUIRES: accepted before.
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
    std::uint64_t variable_bytes = 0;  // in the room, which is rounded
    std::vector<KernelSignature> kernels;
  };
  Result<Variables> take_room(Instant now, DeviceObjects::RangeIndex range, std::uint64_t bytes);
  std::optional<Variables> take_left_room(DeviceObjects::RangeIndex range, std::uint64_t bytes, std::uint64_t most);

  CudaContext& cuda_;
  DeviceObjects& objects_;
  std::map<std::string, Module> modules_;
  // Room that forgotten modules left, by its bytes.
  std::map<DeviceObjects::RangeIndex, std::multimap<std::uint64_t, CUdeviceptr>> left_;
};

}  // namespace fairlead

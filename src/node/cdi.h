// GPUs for containers, as the Container Device Interface describes them (CDI 0.3 to 1.0): one JSON or YAML file per vendor
// says which device files, mounts and variables a container needs for each device. `nvidia-ctk cdi generate` writes it.
//
//   kind: nvidia.com/gpu
//   devices: [{name: "0", containerEdits: {deviceNodes: [{path: /dev/nvidia0}]}}]
//   containerEdits: {mounts: [{hostPath: /usr/lib/libcuda.so.570.1, containerPath: /usr/lib/libcuda.so.570.1}]}
//
// Hooks are not run. What NVIDIA's do (links to libraries by their short names, the loader's cache) is done without them,
// by mounting each library under its short names too and naming its folder in LD_LIBRARY_PATH.
//
// Source: github.com/cncf-tags/container-device-interface, SPEC.md.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "runtime/instance_host.h"

namespace fairlead {

struct CdiEdits {
  std::vector<InstanceSpec::Bind> binds;
  std::map<std::string, std::string> environment;
};

struct CdiSpec {
  std::string kind;                         // "nvidia.com/gpu"
  CdiEdits common;                          // with any of its devices
  std::map<std::string, CdiEdits> devices;  // by name: "0", "all", ...

  // Common and the device's together; nothing when it is not there.
  std::optional<CdiEdits> edits_for(const std::string& device) const;
};

// kCorrupt names `origin` and the field. Unknown fields are ignored, as the specification asks.
Result<CdiSpec> parse_cdi(const std::string& text, std::string_view origin);

// The first specification of `kind` in the folders, later folders first (CDI's order of precedence: /etc/cdi, then
// /var/run/cdi). Files that cannot be read are logged and left out. The mounts' short names are looked up on this machine.
std::optional<CdiSpec> find_cdi(const std::vector<std::string>& folders, std::string_view kind);

// Adds to the edits' mounts of libraries the short names they have on this machine, and their folders to
// LD_LIBRARY_PATH.
void add_library_names(CdiEdits& edits);

}  // namespace fairlead

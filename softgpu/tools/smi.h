// What `softgpu smi` shows, read at one moment.
#pragma once

#include <string>
#include <vector>

#include "softgpu/device/device.h"

namespace softgpu::tools {

struct SmiProcess {
  int pid = 0;
  std::string command;
  std::uint64_t bytes = 0;
};

// A GPU or a MIG device.
struct SmiDevice {
  Part part;
  std::uint64_t used_bytes = 0;
  std::uint64_t total_bytes = 0;
  double busy = 0;  // of the last second, 0 to 1
  std::vector<SmiProcess> processes;
};

struct SmiGpu {
  SmiDevice whole;
  ComputeMode compute_mode = ComputeMode::kDefault;
  bool mig_supported = false;
  bool mig_enabled = false;
  std::vector<SmiDevice> mig_devices;
};

struct Smi {
  std::string home;
  std::string mode;
  std::vector<SmiGpu> gpus;
};

// One JSON object, with a newline at its end.
std::string smi_json(const Smi& all);

}  // namespace softgpu::tools

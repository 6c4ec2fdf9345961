// How long the device worked for each process, as NVML samples it: what no program can write.
//
// Threads: one thread, the monitor's: NVML may block.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/ids.h"
#include "base/units.h"
#include "gpu/nvml.h"

namespace fairlead {

struct ProcessSample {
  GpuId gpu;
  int pid = 0;
  Instant from, until;
  Duration busy{0};  // of that time; exact to half a percent of it
};

class ProcessMeter {
 public:
  // Appends what the processes of a device did since the last call. False: the device does not say.
  bool read(const Nvml& nvml, GpuId gpu, const std::string& uuid, std::vector<ProcessSample>& out);

 private:
  struct Asked {
    std::uint64_t until_us = 0;  // of the device's clock; 0: never
    Instant at;                  // of ours
  };
  std::map<std::string, Asked> asked_;  // by UUID
};

}  // namespace fairlead

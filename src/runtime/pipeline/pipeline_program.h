// A function of several components as it was deployed: its DAG, and the kernel task of each component with the buffers that its inputs and
// outputs are. Plain values, shared by whoever runs it.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "decide/pipeline/component_times.h"
#include "decide/pipeline/dag.h"
#include "model/kernel_task.h"
#include "runtime/device_servers/device_servers.h"

namespace fairlead {

struct ComponentTask {
  std::shared_ptr<const KernelTaskSpec> spec;
  std::map<std::string, std::string> constant_files;  // by the key that the task names
  std::vector<std::uint32_t> inputs, outputs;         // buffers of the component's ports, in their order
  // Digest of the tenant, of kernels, shapes and sizes. "": a program. Not said: nobody said what it takes.
  ComponentKind kind = {};
};

struct PipelineProgram {
  Dag dag;                           // check_dag() finds nothing
  std::vector<ComponentTask> tasks;  // of its components
  KernelTask interface;              // no kernels: inputs, then outputs of the whole function, as its callers see them

  std::vector<ComponentKind> kinds() const {
    std::vector<ComponentKind> all;
    for (const ComponentTask& task : tasks) all.push_back(task.kind);
    return all;
  }
};

}  // namespace fairlead

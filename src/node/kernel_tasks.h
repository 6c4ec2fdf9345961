// Functions that are kernel tasks: read and checked from their bundles or from one-off requests.
//
// Plain functions, for any thread. They read files.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "model/kernel_task_request.h"
#include "node/stored_objects.h"
#include "runtime/device_servers/device_servers.h"
#include "runtime/pipeline/pipeline_program.h"

namespace fairlead {

// A constant that came with the code: an object of this key, which names its content.
struct BundledConstant {
  std::string key;
  std::string file;
  Bytes bytes{0};
};
struct BundledTask {
  std::shared_ptr<const KernelTaskSpec>
      spec;  // shared with sessions; of a request, it keeps what is lent and the modules. Null: of a pipeline
  std::vector<BundledConstant> constants;
  std::vector<std::shared_ptr<const LentObject>> lent;
  std::shared_ptr<const PipelineProgram> pipeline = nullptr;  // instead: several kernel tasks (pipeline_folder.h)
};

// Whether the bundle's top level has task.json and no bootstrap.
bool is_kernel_task(const std::string& code_path);
// Reads files: for a worker. Whatever can be said before a device is there is an error here; it names file and place.
Result<BundledTask> read_kernel_task(const std::string& code_path);
// The same of a request, whose files stay in memory. Writes them: for a worker. REQUIRES: validate_request().
Result<BundledTask> read_requested_task(const KernelTaskRequest& request);

}  // namespace fairlead

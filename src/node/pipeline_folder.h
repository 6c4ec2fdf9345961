// Functions that are pipelines: read and checked from their bundles. A bundle has pipeline.json (wire/pipeline_json.h) and the folder of a
// kernel task for each component. Ports and buffers go by name: input "x" of a component is the buffer "x" of its task.
//
// Plain functions, for any thread. They read files.
#pragma once

#include <string>

#include "base/result.h"
#include "node/kernel_tasks.h"

namespace fairlead {

// Whether the bundle's top level has pipeline.json and no bootstrap.
bool is_pipeline(const std::string& code_path);
// Reads files: for a worker. kInvalidArgument names component and port, or component and field.
// `tenant`: whose components take as long as others of the same content.
Result<BundledTask> read_pipeline(const std::string& code_path, const std::string& tenant);

}  // namespace fairlead

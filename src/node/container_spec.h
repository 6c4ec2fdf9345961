// The instance of a function that is an image: what the image says, what its author set and what the platform adds,
// brought together.
#pragma once

#include "model/function.h"
#include "node/gpu_access.h"
#include "runtime/instance_host.h"

namespace fairlead {

// Adds container and environment to `spec`. Of a variable the author's value wins, then the platform's, then the image's;
// LD_LIBRARY_PATH and LD_PRELOAD of the platform come before the image's own instead of replacing them.
// REQUIRES: record.image, and its command line is not empty.
void describe_container(const FunctionRecord& record, const std::map<std::string, std::string>& platform,
                        InstanceSpec& spec);

// kInvalidArgument when neither the image nor its author says what is to be started.
Status check_image_program(const FunctionRecord& record);

}  // namespace fairlead

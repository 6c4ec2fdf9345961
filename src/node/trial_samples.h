// What a function's author gave to call it with while it is measured (model/samples_tag.h).
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "model/function.h"
#include "model/samples_tag.h"

namespace fairlead {

// At least one. A file is read of the function's own code: a link is not followed, and nothing that is not a file is opened for long.
// kInvalidArgument: there is none, or it is no list of payloads. Blocks as reading a file of kMaxSamplesBytes does. Threads: any.
Result<std::vector<std::string>> trial_samples(const FunctionRecord& record, const SamplesTag& samples);

}  // namespace fairlead

// Calls of pipelines, and their answers, in the wire formats of kernel tasks.
//
// Threads: any.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "decide/pipeline/start_attempts.h"
#include "node/runner.h"
#include "runtime/pipeline/pipeline_instance.h"

namespace fairlead {

// The bytes of the program's inputs, in its order. kInvalidArgument says which part of the call does not fit.
Result<std::vector<std::string>> read_pipeline_call(const PipelineProgram& program, const std::string& payload);

// `is_binary`: as the call was; else JSON. An output whose component did not run is left out.
Answer pipeline_answer(InvocationId invocation, bool is_binary, const PipelineProgram& program,
                       const PipelineInstance::Reply& reply);

// Bytes of its outputs.
std::size_t size_of(const PipelineInstance::Reply& reply);
// For callers of a pipeline that is broken.
std::string broken_words(const StartAttempts& starts);

}  // namespace fairlead

// An inference as the function's payload, and its answer as tensors: two forms, for kernel tasks and for programs (CallForm).
//
//   program, x [3, 8] f32  ──>  a safetensors file with x  ──function──>  a safetensors file with y  ──>  y [3] f32, where the model says [-1]
//
// What a program answers is a stranger's. Plain functions, for any thread.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "edge/inference/infer_request.h"

namespace fairlead::inference {

std::string payload_of(const CallSignature& signature, const InferRequest& request);

// Outputs of `signature` get the shapes that they have in this answer. kInternal: it is none, or an output has another type or shape than the
// model says. An output that is missing is missing in what is returned.
Result<KernelTaskAnswer> read_answer(CallSignature& signature, std::string_view payload);

}  // namespace fairlead::inference

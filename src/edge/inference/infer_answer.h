// The answer to an inference request: JSON, and behind it the bytes of the outputs that were asked for as bytes.
//
//   {"model_name": "double", "model_version": "1", "id": "7", "outputs": [
//     {"name": "y", "datatype": "FP32", "shape": [2], "parameters": {"binary_data_size": 8}}]}<8 bytes of y>
//
// Plain functions, for any thread.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "edge/inference/infer_request.h"

namespace fairlead::inference {

inline constexpr const char* kVersion = "1";  // of every model: what is published is invoked as a function

// The bytes of one output. kInternal: it is missing, or has another size.
Result<std::string_view> contents_of(const TensorSpec& tensor, const KernelTaskAnswer& answer);

struct InferAnswer {
  std::string body;
  std::size_t json_bytes = 0;  // body.size(): no output is binary
};
// kInternal: an output of the request is missing in the answer, or has another size. kConflict: it holds a NaN or an infinity, which
// JSON has not, and was not asked for as bytes.
Result<InferAnswer> write_infer_answer(const std::string& model, const CallSignature& signature,
                                       const InferRequest& request, const KernelTaskAnswer& answer);

}  // namespace fairlead::inference

// An inference in gRPC's form: the messages ModelInferRequest and ModelInferResponse (open_inference.proto).
//
//   inputs {name "x", datatype "FP32", shape 2}, raw_input_contents <8 bytes>  ->  a call of a kernel task, whose input is x
//
// Tensors come as bytes, or as numbers in `contents`; FP16 and BF16 as bytes alone. Answers are bytes, as the clients want them. What
// arrives comes from anybody: names, types, shapes and sizes are those of the function, or the request is refused.
// Plain functions, for any thread.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "edge/inference/infer_request.h"
#include "model/call_signature.h"

namespace fairlead::inference {

// Which model is meant, of what read_infer_message() will read whole. kInvalidArgument: the bytes are no such message.
struct MeantModel {
  std::string name;
  std::string version;  // "": any
};
Result<MeantModel> meant_model(std::string_view message);

// kInvalidArgument names the tensor, the value and what it must be.
Result<InferRequest> read_infer_message(const CallSignature& signature, std::string_view message);

// kInternal: an output of the request is missing in the answer, or has another size.
Result<std::string> write_infer_message(const std::string& model, const CallSignature& signature,
                                        const InferRequest& request, const KernelTaskAnswer& answer);

}  // namespace fairlead::inference

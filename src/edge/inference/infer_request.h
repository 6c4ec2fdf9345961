// The body of an inference request: JSON, behind it the bytes of those tensors that the JSON gives a size for.
//
//   Inference-Header-Content-Length: 139
//   {"inputs": [{"name": "x", "datatype": "FP32", "shape": [2], "parameters": {"binary_data_size": 8}}],
//    "outputs": [{"name": "y", "parameters": {"binary_data": true}}]}<8 bytes of x>
//
// becomes a call of the function, whose inputs are x, and what is wanted of its answer. What arrives comes from anybody: names,
// types, shapes and sizes are those of the function, or the request is refused; nothing larger than the body is allocated but the
// numbers that the JSON has as text, and those are bounded by the function's own tensors.
//
// Plain values; functions for any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "model/call_signature.h"

namespace fairlead::inference {

inline constexpr std::size_t kMaxTensors = 1024;  // in one request
inline constexpr std::size_t kMaxIdBytes = 256;   // of what the client calls it
inline constexpr std::int64_t kMaxTimeoutUs = 24LL * 3600 * 1'000'000;

struct WantedOutput {
  std::uint32_t output = 0;  // index in CallSignature::outputs
  bool is_binary = false;

  bool operator==(const WantedOutput&) const = default;
};

struct InferRequest {
  std::string id;                                  // the client's; empty: none
  KernelTaskCall call;                             // of all inputs; outputs inline
  std::vector<std::vector<std::uint64_t>> shapes;  // of call.inputs, as the client says them
  std::vector<WantedOutput> outputs;               // in the order of the answer
  std::optional<std::int64_t> timeout_us;          // how long the client waits; none: it says nothing

  bool operator==(const InferRequest&) const = default;
};

// `json_bytes`: the header's number; none: all of the body is JSON. kInvalidArgument names the tensor, the value and what it must be.
Result<InferRequest> read_infer_request(const CallSignature& signature, std::string_view body,
                                        std::optional<std::size_t> json_bytes);

}  // namespace fairlead::inference

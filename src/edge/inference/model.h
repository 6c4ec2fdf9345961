// A function as the protocol sees it: a model, where it says which tensors it takes and gives.
//
// Plain values. Functions on the io_context's thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/units.h"
#include "edge/inference/infer_answer.h"
#include "edge/node_service.h"
#include "model/call_signature.h"
#include "model/model_tags.h"
#include "model/principal.h"

namespace fairlead::inference {

inline constexpr const char* kBackend = "fairlead";

struct Model {
  std::string name;
  std::string tenant;
  CallSignature signature;
  std::optional<BatchRule> batch;  // none: each inference is a call of its own
};

// "fairlead_kernel_task", of pipelines too, or "fairlead_program".
const char* platform_of(const Model& model);

// `version`: "" is any. kNotFound: there is none, or not for this caller. kInvalidArgument: the function is no model.
Result<Model> find_model(NodeService& node, const Principal& who, const std::string& name, std::string_view version);
std::vector<Model> models_of(NodeService& node, const Principal& who);

// Counts and sums since the node started. A function's time on its device is all of its run that is known apart.
struct Statistics {
  struct Counted {
    std::uint64_t count = 0;
    std::uint64_t ns = 0;
  };
  std::string name;
  Counted success, fail, queue, compute;
};
std::vector<Statistics> statistics_of(NodeService& node, const std::vector<Model>& models);

}  // namespace fairlead::inference

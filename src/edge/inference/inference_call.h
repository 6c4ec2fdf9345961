// One inference on its way through the node, whatever the form in which it came: a request is read, the function invoked, its answer
// written.
//
//   exchange ──read──> InferRequest ──invoke──> KernelTaskAnswer ──write──> exchange
//
// What takes long to read or write is done on another thread. Threads: the io_context's; read and write on any.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "base/result.h"
#include "edge/inference/batches.h"
#include "edge/inference/infer_request.h"
#include "edge/inference/model.h"
#include "edge/node_service.h"
#include "net/http_server.h"

namespace fairlead::inference {

// What the form of a request says of it.
struct InferenceForm {
  std::function<Result<InferRequest>(const CallSignature& signature)> read;
  std::function<Result<net::HttpResponse>(const Model& model, const InferRequest& request,
                                          const KernelTaskAnswer& answer)>
      write;
  // Answers of so many bytes are written on another thread.
  std::function<bool(const InferRequest& request, std::size_t answer_bytes)> writes_long;
  std::function<void(net::HttpExchange exchange, const Error& error)> refuse;
};

struct InferenceCall {
  Model model;
  net::HttpExchange exchange;
  std::optional<std::int64_t> deadline_ms;  // since 1970; none: the caller names none
  std::string trace_id;
  std::size_t long_bytes = 0;  // to be read, if that takes long; 0: it does not
};

// With others where the model says so (batches.h).
void run_inference(NodeService& node, Batches& batches, InferenceCall call, InferenceForm form);

}  // namespace fairlead::inference

#include "edge/inference/inference_call.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "base/clock.h"
#include "edge/inference/call_form.h"
#include "edge/inference/inference_error.h"

namespace fairlead::inference {
namespace {

struct Inference {
  NodeService& node;
  Batches& batches;
  InferenceCall call;
  InferenceForm form;
  InferRequest request;
};
using Pending = std::shared_ptr<Inference>;  // std::function wants copies

void refuse(const Pending& inference, const Error& error) {
  inference->form.refuse(std::move(inference->call.exchange), error);
}

void respond(const Pending& inference, Result<net::HttpResponse> answer) {
  if (!answer) return refuse(inference, answer.error());
  inference->call.exchange.respond(*std::move(answer));
}

// Reading an answer and writing it out may take as long as reading the request did.
void answer_with(const Pending& inference, std::size_t bytes, std::function<Result<net::HttpResponse>()> write) {
  if (!inference->form.writes_long(inference->request, bytes)) return respond(inference, write());
  const Status accepted = inference->node.run_elsewhere(
      inference->call.model.tenant, Bytes(static_cast<std::int64_t>(bytes)), [inference, write = std::move(write)] {
        return [inference, answer = std::make_shared<Result<net::HttpResponse>>(write())] {
          respond(inference, std::move(*answer));
        };
      });
  if (!accepted) refuse(inference, accepted.error());
}

void on_outcome(const Pending& inference, Result<Outcome> outcome) {
  if (!outcome) return refuse(inference, outcome.error());
  if (outcome->failed()) return refuse(inference, error_of(*outcome));
  const std::size_t bytes = outcome->payload.size();
  answer_with(inference, bytes, [inference, payload = std::move(outcome->payload)]() -> Result<net::HttpResponse> {
    const auto answer = read_answer(inference->call.model.signature, payload);
    if (!answer) return fail(answer.error());
    return inference->form.write(inference->call.model, inference->request, *answer);
  });
}

void on_answered(const Pending& inference, Result<Answered> answered) {
  if (!answered) return refuse(inference, answered.error());
  inference->call.model.signature.outputs = std::move(answered->outputs);
  std::size_t bytes = 0;
  for (const auto& output : answered->answer.outputs) bytes += output.bytes.size();
  answer_with(inference, bytes, [inference, answer = std::move(answered->answer)] {
    return inference->form.write(inference->call.model, inference->request, answer);
  });
}

std::optional<std::int64_t> deadline_of(const Inference& inference) {
  const auto timeout = inference.request.timeout_us;
  if (!timeout) return inference.call.deadline_ms;
  const std::int64_t deadline = wall_clock_ms() + (*timeout + 999) / 1000;
  return std::min(deadline, inference.call.deadline_ms.value_or(deadline));
}

NodeService::CancelHandle invoke_with_others(const Pending& inference, BatchedInference batched) {
  InferenceCall& call = inference->call;
  batched.deadline_ms = deadline_of(*inference);
  batched.trace_id = std::move(call.trace_id);
  return inference->batches.call(call.model, std::move(batched), [inference](Result<Answered> answered) {
    on_answered(inference, std::move(answered));
  });
}

void invoke(const Pending& inference, Result<InferRequest> request) {
  if (!request) return refuse(inference, request.error());
  InferenceCall& call = inference->call;
  inference->request = *std::move(request);
  if (auto batched = Batches::take_from(call.model, inference->request)) {
    auto cancel = invoke_with_others(inference, *std::move(batched));
    if (call.exchange && cancel) call.exchange.on_disconnect(std::move(cancel));
    return;
  }
  InvokeRequest invocation;
  invocation.invocation.function = call.model.name;
  invocation.invocation.payload = payload_of(call.model.signature, inference->request);
  if (invocation.invocation.payload.size() > kMaxSyncPayloadBytes) {
    return refuse(inference,
                  {Errc::kTooLarge, fmt::format("the tensors have {} bytes; a call may have at most {}",
                                                invocation.invocation.payload.size(), kMaxSyncPayloadBytes)});
  }
  for (CallBinding& input : inference->request.call.inputs) input.bytes = {};  // they are in the payload
  invocation.invocation.trace_id = std::move(call.trace_id);
  invocation.invocation.deadline_ms = deadline_of(*inference);
  auto cancel = inference->node.invoke(
      std::move(invocation), [inference](Result<Outcome> outcome) { on_outcome(inference, std::move(outcome)); });
  if (call.exchange && cancel) call.exchange.on_disconnect(std::move(cancel));
}

}  // namespace

void run_inference(NodeService& node, Batches& batches, InferenceCall call, InferenceForm form) {
  const Pending inference = std::make_shared<Inference>(Inference{node, batches, std::move(call), std::move(form), {}});
  const auto read = [inference] { return inference->form.read(inference->call.model.signature); };
  if (inference->call.long_bytes == 0) return invoke(inference, read());
  const Status accepted = node.run_elsewhere(
      inference->call.model.tenant, Bytes(static_cast<std::int64_t>(inference->call.long_bytes)), [inference, read] {
        return [inference, request = std::make_shared<Result<InferRequest>>(read())] {
          invoke(inference, std::move(*request));
        };
      });
  if (!accepted) refuse(inference, accepted.error());
}

}  // namespace fairlead::inference

#include "edge/inference/inference_call.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "base/clock.h"
#include "wire/kernel_task_codec.h"

namespace fairlead::inference {
namespace {

struct Inference {
  NodeService& node;
  InferenceCall call;
  InferenceForm form;
  InferRequest request;
};
using Pending = std::shared_ptr<Inference>;  // std::function wants copies

Error error_of(const Outcome& outcome) {
  const std::string& text = outcome.failure.text.empty() ? outcome.payload : outcome.failure.text;
  const std::string what =
      fmt::format("{}: {}", outcome.failure.type.empty() ? outcome_name(outcome.kind) : outcome.failure.type,
                  std::string_view(text).substr(0, 1000));
  switch (outcome.kind) {
    case OutcomeKind::kTimeout:
    case OutcomeKind::kExpired: return {Errc::kDeadlineExceeded, what};
    case OutcomeKind::kStartFailed: return {Errc::kUnavailable, what};
    default: return {Errc::kInternal, what};
  }
}

void refuse(const Pending& inference, const Error& error) {
  inference->form.refuse(std::move(inference->call.exchange), error);
}

void respond(const Pending& inference, Result<net::HttpResponse> answer) {
  if (!answer) return refuse(inference, answer.error());
  inference->call.exchange.respond(*std::move(answer));
}

// Reading an answer and writing it out may take as long as reading the request did.
void answer_with(const Pending& inference, Result<Outcome> outcome) {
  if (!outcome) return refuse(inference, outcome.error());
  if (outcome->failed()) return refuse(inference, error_of(*outcome));
  const std::size_t bytes = outcome->payload.size();
  auto write = [inference, payload = std::move(outcome->payload)]() -> Result<net::HttpResponse> {
    const auto answer = wire::decode_kernel_task_answer(payload);
    if (!answer) return fail(answer.error());
    return inference->form.write(inference->call.model, inference->request, *answer);
  };
  if (!inference->form.writes_long(inference->request, bytes)) return respond(inference, write());
  const Status accepted = inference->node.run_elsewhere(
      inference->call.model.tenant, Bytes(static_cast<std::int64_t>(bytes)), [inference, write = std::move(write)] {
        return [inference, answer = std::make_shared<Result<net::HttpResponse>>(write())] {
          respond(inference, std::move(*answer));
        };
      });
  if (!accepted) refuse(inference, accepted.error());
}

void invoke(const Pending& inference, Result<InferRequest> request) {
  if (!request) return refuse(inference, request.error());
  InferenceCall& call = inference->call;
  inference->request = *std::move(request);
  InvokeRequest invocation;
  invocation.invocation.function = call.model.name;
  invocation.invocation.payload = wire::encode(inference->request.call);
  if (invocation.invocation.payload.size() > kMaxSyncPayloadBytes) {
    return refuse(inference,
                  {Errc::kTooLarge, fmt::format("the tensors have {} bytes; a call may have at most {}",
                                                invocation.invocation.payload.size(), kMaxSyncPayloadBytes)});
  }
  for (CallBinding& input : inference->request.call.inputs) input.bytes = {};  // they are in the payload
  invocation.invocation.trace_id = std::move(call.trace_id);
  invocation.invocation.deadline_ms = call.deadline_ms;
  if (const auto timeout = inference->request.timeout_us) {
    const std::int64_t deadline = wall_clock_ms() + (*timeout + 999) / 1000;
    invocation.invocation.deadline_ms = std::min(deadline, call.deadline_ms.value_or(deadline));
  }
  auto cancel = inference->node.invoke(
      std::move(invocation), [inference](Result<Outcome> outcome) { answer_with(inference, std::move(outcome)); });
  if (call.exchange && cancel) call.exchange.on_disconnect(std::move(cancel));
}

}  // namespace

void run_inference(NodeService& node, InferenceCall call, InferenceForm form) {
  const Pending inference = std::make_shared<Inference>(Inference{node, std::move(call), std::move(form), {}});
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

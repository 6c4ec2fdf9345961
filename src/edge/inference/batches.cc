#include "edge/inference/batches.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "base/clock.h"
#include "edge/inference/call_form.h"
#include "edge/inference/inference_error.h"
#include "wire/safetensors.h"

namespace fairlead::inference {
namespace {

constexpr std::size_t kHeaderBytes = 64 << 10;  // of a payload, at most

std::size_t rows_of(const BatchedInference& inference) {
  return static_cast<std::size_t>(inference.shapes.front().front());
}

// The rows that one call may have, where so many have so many bytes: a payload has a bound, too.
std::size_t most_rows(const BatchRule& rule, std::size_t rows, std::size_t bytes) {
  const std::size_t of_a_row = bytes / rows;
  return of_a_row == 0 ? rule.rows : std::min(rule.rows, (kMaxSyncPayloadBytes - kHeaderBytes) / of_a_row);
}

std::size_t bytes_of(const BatchedInference& inference) {
  std::size_t bytes = 0;
  for (const std::string& input : inference.inputs) bytes += input.size();
  return bytes;
}

// Who may go together: the same function as it is now, and the same sizes.
std::string group_of(const Model& model, const BatchedInference& inference, std::size_t rows) {
  std::string group = fmt::format("{} {}", model.name, rows);
  for (const auto* tensors : {&model.signature.inputs, &model.signature.outputs}) {
    for (const TensorSpec& tensor : *tensors) {
      group += fmt::format(" {}:{}:{}", tensor.name, static_cast<int>(tensor.type), fmt::join(tensor.shape, "x"));
    }
  }
  for (const auto& shape : inference.shapes) {
    group += fmt::format(" {}", fmt::join(shape.begin() + 1, shape.end(), "x"));
  }
  return group;
}

bool may_be_one_s_fault(const Result<Outcome>& outcome) {
  return outcome && (outcome->kind == OutcomeKind::kFunctionError || outcome->kind == OutcomeKind::kCrashed);
}

// So many rows of each output, from the first on. kInternal: it has another number than the call had.
Result<Answered> cut(const std::vector<TensorSpec>& outputs, const KernelTaskAnswer& answer, std::size_t first,
                     std::size_t rows, std::size_t all) {
  Answered cut{.outputs = outputs, .answer = {}};
  for (const KernelTaskAnswer::Output& output : answer.outputs) {
    TensorSpec& tensor = cut.outputs[output.buffer];
    if (tensor.shape.front() != all) {
      return fail(Errc::kInternal, "the function's answer has {} rows of '{}'; it was given {}", tensor.shape.front(),
                  tensor.name, all);
    }
    const std::size_t row = output.bytes.size() / all;
    tensor.shape.front() = rows;
    tensor.bytes = Bytes(static_cast<std::int64_t>(row * rows));
    cut.answer.outputs.push_back({.buffer = output.buffer, .bytes = output.bytes.substr(first * row, rows * row)});
  }
  return cut;
}

}  // namespace

std::optional<BatchedInference> Batches::take_from(const Model& model, InferRequest& request) {
  if (!model.batch || request.shapes.empty()) return std::nullopt;
  const std::uint64_t rows = request.shapes.front().front();
  const auto has_rows = [&](const auto& shape) { return shape.front() == rows; };
  if (rows == 0 || !std::ranges::all_of(request.shapes, has_rows)) return std::nullopt;
  std::size_t bytes = 0;
  for (const CallBinding& input : request.call.inputs) bytes += input.bytes.size();
  if (rows > most_rows(*model.batch, rows, bytes)) return std::nullopt;
  BatchedInference taken;
  taken.inputs.resize(model.signature.inputs.size());
  taken.shapes.resize(model.signature.inputs.size());
  for (std::size_t i = 0; i < request.call.inputs.size(); ++i) {
    CallBinding& input = request.call.inputs[i];
    taken.inputs[input.buffer] = std::move(input.bytes);
    taken.shapes[input.buffer] = std::move(request.shapes[i]);
  }
  return taken;
}

NodeService::CancelHandle Batches::call(const Model& model, BatchedInference inference, Done done) {
  const std::size_t rows = rows_of(inference), most = most_rows(*model.batch, rows, bytes_of(inference));
  const std::string name = group_of(model, inference, most);
  Duration wait = model.batch->most_wait.value_or(kMostBatchWait);
  if (inference.deadline_ms) {  // a quarter of what is left: the rest is for the queue and the run
    wait = std::min<Duration>(wait, std::chrono::milliseconds(*inference.deadline_ms - wall_clock_ms()) / 4);
  }
  const Number number = next_++;
  members_.emplace(number, Member{std::move(inference), std::move(done), name});
  const auto group = groups_.try_emplace(name, Group{model.signature, model.name, Batcher(most), std::nullopt}).first;
  start(name, group->second.batcher.add(clock_.now(), number, rows, wait));
  return [this, number, alive = std::weak_ptr(alive_)] {
    if (!alive.expired()) leave(number);
  };
}

void Batches::start(const std::string& group, const Batcher::Batches& batches) {
  for (const Batcher::Batch& batch : batches) start_call(group, batch, true);
  set_timer(group);
}

void Batches::start_call(const std::string& name, Batcher::Batch numbers, bool is_batched) {
  const Group& group = groups_.at(name);
  const std::uint64_t id = next_++;
  std::vector<wire::FileTensor> tensors;
  std::vector<std::string> bytes(group.signature.inputs.size());
  InvokeRequest request;
  request.invocation.function = group.function;
  std::optional<std::int64_t> deadline;
  bool is_patient = false;  // somebody waits for as long as it takes
  std::size_t rows = 0;
  for (const Number number : numbers) {
    Member& member = members_.at(number);
    member.call = id;
    rows += rows_of(member.inference);
    for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] += member.inference.inputs[i];
    is_patient = is_patient || !member.inference.deadline_ms;
    deadline = std::max(deadline, member.inference.deadline_ms);
  }
  const Member& first = members_.at(numbers.front());
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    std::vector<std::uint64_t> shape = first.inference.shapes[i];
    shape.front() = rows;
    const TensorSpec& tensor = group.signature.inputs[i];
    tensors.push_back({tensor.name, tensor.type, std::move(shape), bytes[i]});
  }
  request.invocation.payload = wire::write_safetensors(std::move(tensors));
  request.invocation.trace_id = first.inference.trace_id;
  if (!is_patient) request.invocation.deadline_ms = deadline;
  calls_.emplace(id, Call{std::move(numbers), clock_.now(), is_batched, {}});
  auto cancel =
      node_.invoke(std::move(request), [this, id, name, alive = std::weak_ptr(alive_)](Result<Outcome> outcome) {
        if (!alive.expired()) on_outcome(id, name, std::move(outcome));
      });
  if (const auto call = calls_.find(id); call != calls_.end()) call->second.cancel = std::move(cancel);
}

void Batches::set_timer(const std::string& name) {
  const auto group = groups_.find(name);
  if (group == groups_.end()) return;
  const auto next = group->second.batcher.next_tick();
  if (!next || (group->second.timer && *group->second.timer <= *next)) return;
  group->second.timer = next;
  clock_.after(std::max<Duration>(*next - clock_.now(), Duration(0)),
               [this, name, at = *next, alive = std::weak_ptr(alive_)] {
                 if (alive.expired()) return;
                 const auto found = groups_.find(name);
                 if (found == groups_.end() || found->second.timer != at) return;
                 found->second.timer.reset();
                 start(name, found->second.batcher.tick(clock_.now()));
               });
}

void Batches::on_outcome(std::uint64_t id, const std::string& name, Result<Outcome> outcome) {
  const Call call = std::move(calls_.extract(id).mapped());
  Group& group = groups_.at(name);                                                  // stays while it has members
  if (call.is_batched) start(name, group.batcher.ended(clock_.now(), call.began));  // the device first
  if (call.members.size() > 1 && may_be_one_s_fault(outcome)) {
    for (const Number member : call.members) {
      if (members_.at(member).done) {
        start_call(name, {member}, false);
      } else {
        members_.erase(member);
      }
    }
  } else {
    answer(group, call.members, outcome);
  }
  forget_if_empty(name);
}

void Batches::answer(const Group& group, const std::vector<Number>& members, const Result<Outcome>& outcome) {
  const auto refuse_all = [&](const Error& error) {
    for (const Number member : members) finish(member, tl::unexpected(error));
  };
  if (!outcome) return refuse_all(outcome.error());
  if (outcome->failed()) return refuse_all(error_of(*outcome));
  CallSignature signature = group.signature;
  const auto answer = read_answer(signature, outcome->payload);
  if (!answer) return refuse_all(answer.error());
  std::size_t all = 0, first = 0;
  for (const Number member : members) all += rows_of(members_.at(member).inference);
  for (const Number member : members) {
    const std::size_t rows = rows_of(members_.at(member).inference);
    finish(member, cut(signature.outputs, *answer, first, rows, all));
    first += rows;
  }
}

void Batches::finish(Number number, Result<Answered> answered) {
  Member member = std::move(members_.extract(number).mapped());
  if (!member.done) return;
  if (member.inference.deadline_ms && *member.inference.deadline_ms < wall_clock_ms()) {
    return member.done(fail(Errc::kDeadlineExceeded, "the deadline has passed while others were answered"));
  }
  member.done(std::move(answered));
}

void Batches::leave(Number number) {
  const auto member = members_.find(number);
  if (member == members_.end()) return;
  const std::string group = member->second.group;
  if (member->second.call == 0) {
    groups_.at(group).batcher.gone(number);
    members_.erase(member);
    return forget_if_empty(group);
  }
  member->second.done = nullptr;
  const auto call = calls_.find(member->second.call);
  const auto has_gone = [&](Number one) { return !members_.at(one).done; };
  if (call == calls_.end() || !std::ranges::all_of(call->second.members, has_gone)) return;
  if (const auto cancel = call->second.cancel) cancel();  // its outcome follows
}

void Batches::forget_if_empty(const std::string& name) {
  const auto group = groups_.find(name);
  const auto is_of_group = [&](const auto& member) { return member.second.group == name; };
  if (group == groups_.end() || !group->second.batcher.empty() || std::ranges::any_of(members_, is_of_group)) return;
  groups_.erase(group);
}

}  // namespace fairlead::inference

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

constexpr std::size_t kHeaderBytes = 64 << 10;               // of a payload, at most
constexpr Duration kLongestTimer = std::chrono::seconds(1);  // to a deadline: it cannot be taken back, and most are met

// All sizes but the first are the model's.
std::size_t row_bytes(const std::vector<TensorSpec>& tensors) {
  std::size_t bytes = 0;
  for (const TensorSpec& tensor : tensors) {
    const auto row = shape_bytes(tensor.type, {tensor.shape.begin() + 1, tensor.shape.end()});
    bytes += row ? static_cast<std::size_t>(row->count()) : kMaxSyncPayloadBytes;
  }
  return bytes;
}

// The rows that one call may have, since payloads and answers have a bound, too.
std::size_t most_rows(const Model& model) {
  const std::size_t row = std::max(row_bytes(model.signature.inputs), row_bytes(model.signature.outputs));
  return std::min(model.batch->rows, (kMaxSyncPayloadBytes - kHeaderBytes) / std::max<std::size_t>(row, 1));
}

// Who may go together: callers of the same function with the same tags.
std::string group_of(const Model& model, std::size_t rows) {
  std::string group = fmt::format("{} {}", model.name, rows);
  for (const auto* tensors : {&model.signature.inputs, &model.signature.outputs}) {
    for (const TensorSpec& tensor : *tensors) {
      group += fmt::format(" {}:{}:{}", tensor.name, static_cast<int>(tensor.type), fmt::join(tensor.shape, "x"));
    }
  }
  return group;
}

bool may_be_ones_fault(const Result<Outcome>& outcome) {
  return outcome &&
         (!outcome->failed() || outcome->kind == OutcomeKind::kFunctionError || outcome->kind == OutcomeKind::kCrashed);
}

bool has_run(const Result<Outcome>& outcome) {
  return may_be_ones_fault(outcome) || (outcome && outcome->kind == OutcomeKind::kTimeout);
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
  if (!model.batch || model.signature.form != CallForm::kSafetensors || request.shapes.empty()) return std::nullopt;
  const std::uint64_t rows = request.shapes.front().front();
  const auto has_rows = [&](const auto& shape) { return shape.front() == rows; };
  if (rows == 0 || rows > most_rows(model) || !std::ranges::all_of(request.shapes, has_rows)) return std::nullopt;
  BatchedInference taken{.rows = static_cast<std::size_t>(rows)};
  taken.inputs.resize(model.signature.inputs.size());
  for (const WantedOutput& output : request.outputs) taken.wanted.push_back(output.output);
  for (CallBinding& input : request.call.inputs) taken.inputs[input.buffer] = std::move(input.bytes);
  return taken;
}

NodeService::CancelHandle Batches::call(const Model& model, BatchedInference inference, Done done) {
  const std::size_t rows = inference.rows, most = most_rows(model);
  const std::string name = group_of(model, most);
  const Number number = next_++;
  const std::weak_ptr<int> alive = alive_;
  Duration wait = model.batch->most_wait.value_or(kMostBatchWait);
  std::optional<Instant> late;
  if (inference.deadline_ms) {
    const Duration left = std::chrono::milliseconds(*inference.deadline_ms - wall_clock_ms());
    wait = std::min(wait, left / 4);  // the rest is for the queue and the run
    late = clock_.now() + left;
    deadlines_.emplace(*late, number);
    watch_deadlines();
  }
  members_.emplace(number, Member{std::move(inference), std::move(done), name, late});
  Group& group =
      groups_.try_emplace(name, Group{model.signature, model.name, Batcher(most), std::nullopt}).first->second;
  ++group.members;
  start(name, group.batcher.add(clock_.now(), number, rows, wait));
  return [this, number, alive] {
    if (!alive.expired()) leave(number);
  };
}

void Batches::start(const std::string& group, const Batcher::Batches& batches) {
  for (const Batcher::Batch& batch : batches) start_call(group, batch, true);
  set_timer(group);
}

void Batches::start_call(const std::string& name, Batcher::Batch numbers, bool is_batched) {
  std::erase_if(numbers, [&](Number number) {
    const bool has_gone = !members_.at(number).done;
    if (has_gone) release(number);
    return has_gone;
  });
  const std::uint64_t id = next_++;
  Call call{
      .group = name, .members = std::move(numbers), .began = clock_.now(), .is_batched = is_batched, .cancel = {}};
  if (call.members.empty()) return over(call, std::nullopt);
  call.present = call.members.size();
  for (const Number number : call.members) members_.at(number).call = id;
  InvokeRequest request = request_of(groups_.at(name), call.members);
  calls_.emplace(id, std::move(call));
  auto cancel = node_.invoke(std::move(request), [this, id, alive = std::weak_ptr(alive_)](Result<Outcome> outcome) {
    if (!alive.expired()) on_outcome(id, std::move(outcome));
  });
  if (const auto called = calls_.find(id); called != calls_.end()) {
    called->second.cancel = std::move(cancel);
  } else if (cancel) {
    cancel();  // it is over, or nobody wants it any more
  }
}

InvokeRequest Batches::request_of(const Group& group, const std::vector<Number>& numbers) {
  std::vector<std::string> bytes(group.signature.inputs.size());
  InvokeRequest request;
  request.invocation.function = group.function;
  std::optional<std::int64_t> deadline;
  bool is_patient = false;  // somebody waits for as long as it takes
  std::size_t rows = 0;
  for (const Number number : numbers) {
    BatchedInference& inference = members_.at(number).inference;
    rows += inference.rows;
    is_patient = is_patient || !inference.deadline_ms;
    deadline = std::max(deadline, inference.deadline_ms);
    for (std::size_t i = 0; i < bytes.size(); ++i) {
      // Alone it is not called again.
      numbers.size() == 1 ? bytes[i].swap(inference.inputs[i]) : void(bytes[i] += inference.inputs[i]);
    }
  }
  std::vector<wire::FileTensor> tensors;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    const TensorSpec& tensor = group.signature.inputs[i];
    std::vector<std::uint64_t> shape = tensor.shape;
    shape.front() = rows;
    tensors.push_back({tensor.name, tensor.type, std::move(shape), bytes[i]});
  }
  request.invocation.payload = wire::write_safetensors(std::move(tensors));
  request.invocation.trace_id = members_.at(numbers.front()).inference.trace_id;
  if (!is_patient) request.invocation.deadline_ms = deadline;
  return request;
}

void Batches::set_timer(const std::string& name) {
  const auto group = groups_.find(name);
  if (group == groups_.end()) return;
  const auto next = group->second.batcher.next_tick();
  if (!next || (group->second.timer && *group->second.timer <= *next)) return;
  group->second.timer = next;
  const auto ring = [this, name, at = *next, alive = std::weak_ptr(alive_)] {
    if (alive.expired()) return;
    const auto found = groups_.find(name);
    if (found == groups_.end() || found->second.timer != at) return;
    found->second.timer.reset();
    start(name, found->second.batcher.tick(clock_.now()));
  };
  clock_.after(std::max<Duration>(*next - clock_.now(), Duration(0)), ring);
}

void Batches::on_outcome(std::uint64_t id, Result<Outcome> outcome) {
  const auto found = calls_.find(id);
  if (found == calls_.end()) return;  // everybody had left
  const Call call = std::move(found->second);
  calls_.erase(found);
  const CallSignature& signature = groups_.at(call.group).signature;        // stays while it has members
  over(call, has_run(outcome) ? std::optional(call.began) : std::nullopt);  // the device first
  Result<std::vector<Answered>> answers = tl::unexpected(Error{});
  if (!outcome) {
    answers = tl::unexpected(outcome.error());
  } else if (outcome->failed()) {
    answers = tl::unexpected(error_of(*outcome));
  } else {
    answers = split(signature, call.members, outcome->payload);
  }
  if (!answers && call.members.size() > 1 && may_be_ones_fault(outcome)) return repeat(call.group, call.members);
  for (std::size_t i = 0; i < call.members.size(); ++i) {
    const Done done = release(call.members[i]);
    if (!done) continue;
    answers ? done(std::move((*answers)[i])) : done(tl::unexpected(answers.error()));
  }
  forget_if_empty(call.group);
}

// By member.
Result<std::vector<Answered>> Batches::split(CallSignature signature, const std::vector<Number>& numbers,
                                             std::string_view payload) {
  const auto answer = read_answer(signature, payload);
  if (!answer) return fail(answer.error());
  const auto is_there = [&](std::uint32_t wanted) {
    const std::uint32_t buffer = signature.outputs[wanted].buffer;
    return std::ranges::find(answer->outputs, buffer, &KernelTaskAnswer::Output::buffer) != answer->outputs.end();
  };
  for (const Number number : numbers) {
    if (numbers.size() == 1 || std::ranges::all_of(members_.at(number).inference.wanted, is_there)) continue;
    return fail(Errc::kInternal, "the function's answer lacks an output");
  }
  std::size_t all = 0, first = 0;
  for (const Number number : numbers) all += members_.at(number).inference.rows;
  std::vector<Answered> answers;
  for (const Number number : numbers) {
    const std::size_t rows = members_.at(number).inference.rows;
    auto part = cut(signature.outputs, *answer, first, rows, all);
    if (!part) return fail(part.error());
    answers.push_back(*std::move(part));
    first += rows;
  }
  return answers;
}

void Batches::repeat(const std::string& name, const std::vector<Number>& numbers) {
  const auto half = numbers.begin() + static_cast<std::ptrdiff_t>(numbers.size() / 2);
  const Batcher::Batch halves[] = {{numbers.begin(), half}, {half, numbers.end()}};
  for (const Batcher::Batch& one : halves) start_call(name, one, false);
  forget_if_empty(name);
}

// `began`: as of one that ran; what was refused says nothing of how long calls take.
void Batches::over(const Call& call, std::optional<Instant> began) {
  if (call.is_batched) start(call.group, groups_.at(call.group).batcher.ended(clock_.now(), began));
  forget_if_empty(call.group);
}

void Batches::watch_deadlines() {
  if (deadlines_.empty()) return;
  const Instant at = std::min(deadlines_.begin()->first, clock_.now() + kLongestTimer);
  if (deadline_timer_ && *deadline_timer_ <= at) return;
  deadline_timer_ = at;
  clock_.after(std::max<Duration>(at - clock_.now(), Duration(0)), [this, at, alive = std::weak_ptr(alive_)] {
    if (alive.expired() || deadline_timer_ != at) return;
    deadline_timer_.reset();
    const Instant now = clock_.now();
    while (!deadlines_.empty() && deadlines_.begin()->first <= now) {
      expire(deadlines_.extract(deadlines_.begin()).value().second);
    }
    watch_deadlines();
  });
}

void Batches::expire(Number number) {
  const auto member = members_.find(number);
  if (member == members_.end() || !member->second.done) return;
  const Done done = std::exchange(member->second.done, [](const auto&) {});  // present, until it leaves
  leave(number);
  done(fail(Errc::kDeadlineExceeded, "the deadline has passed"));
}

void Batches::leave(Number number) {
  const auto member = members_.find(number);
  if (member == members_.end() || !member->second.done) return;
  const std::string name = member->second.group;
  const Done gone = std::exchange(member->second.done, nullptr);  // its end may do anything: last
  if (member->second.call == 0) {                                 // it waits, or is about to be called
    if (groups_.at(name).batcher.gone(number)) release(number);
    return forget_if_empty(name);
  }
  for (std::string& input : member->second.inference.inputs) input = {};
  const auto found = calls_.find(member->second.call);
  if (found == calls_.end() || --found->second.present > 0) return;
  const Call call = std::move(found->second);
  calls_.erase(found);  // nothing is heard of it any more
  if (call.cancel) call.cancel();
  for (const Number one : call.members) release(one);
  over(call, std::nullopt);
}

Batches::Done Batches::release(Number number) {
  Member member = std::move(members_.extract(number).mapped());
  --groups_.at(member.group).members;
  if (member.late) deadlines_.erase({*member.late, number});
  return std::move(member.done);
}

void Batches::forget_if_empty(const std::string& name) {
  const auto group = groups_.find(name);
  if (group != groups_.end() && group->second.members == 0 && group->second.batcher.empty()) groups_.erase(group);
}

}  // namespace fairlead::inference

#include "node/pipelines.h"

#include <algorithm>
#include <boost/asio/post.hpp>
#include <utility>

#include "base/clock.h"
#include "base/log.h"
#include "model/tenant.h"
#include "wire/kernel_task_codec.h"

namespace fairlead {
namespace {

constexpr Bytes kAnyMemory{std::int64_t{1}
                           << 50};  // the device of a pipeline's function: its slices' memory is counted by the planner
constexpr Duration kFirstWait = std::chrono::seconds(1), kMostWait = std::chrono::seconds(30);

}  // namespace

Pipelines::Pipelines(boost::asio::io_context& io, PipelinesOptions options, CoreDriver& driver, Functions& functions,
                     InstanceEvents events)
    : io_(io),
      options_(std::move(options)),
      driver_(driver),
      functions_(functions),
      events_(std::move(events)),
      slices_(driver, functions) {}

void Pipelines::connect(PipelineSlices::Devices devices, GiveShare give_share) {
  slices_.connect(std::move(devices));
  give_share_ = std::move(give_share);
}

void Pipelines::post(std::function<void()> job) {
  boost::asio::post(io_, [alive = std::weak_ptr<int>(alive_), job = std::move(job)] {
    if (!alive.expired()) job();
  });
}

Pipelines::Group* Pipelines::find(FlowId flow) {
  const auto found = groups_.find(flow);
  return found == groups_.end() ? nullptr : &found->second;
}

void Pipelines::tick() {
  meet_functions();
  slices_.keep();
  for (auto& [flow, group] : groups_) {
    lose_slices(group);
    std::erase_if(group.draining, [this](const Running& running) {
      const auto open = by_request_.lower_bound({running.number, PipelineRequestId()});
      const bool is_heard =
          open == by_request_.end() || open->first.first != running.number;  // its last replies are posted
      if (!running.instance->is_empty() || !is_heard) return false;
      slices_.give_back(running.placement);
      return true;
    });
    if (!group.current) place(group);
    for (std::optional<Running>* running : {&group.current, &group.next}) {
      if (*running && !(*running)->instance && !begin(group, **running)) running->reset();
    }
    if (group.current && group.current->instance && group.current->instance->is_ready() && !group.next) improve(group);
    ready_places(group);
  }
}

// ---- functions

void Pipelines::meet_functions() {
  std::vector<FlowId> gone;
  for (const auto& [flow, group] : groups_) {
    const RegisteredFunction* function = functions_.find(flow);
    if (function == nullptr || !function->is_pipeline()) gone.push_back(flow);
  }
  for (const FlowId flow : gone) {
    Group& group = groups_.at(flow);
    forget(group, "the function is gone");
    driver_.tell(
        [device = group.device](Core& core, Instant now, Actions& out) { core.device(now, DeviceWent{device}, out); });
    groups_.erase(flow);
  }
  for (const auto& [name, function] : functions_.all()) {
    if (!function.is_pipeline()) continue;
    Group* const known = find(function.flow);
    if (known != nullptr) {
      if (known->program != function.kernel_task->pipeline) {
        retire(*known);
        known->program = function.kernel_task->pipeline;
        known->wait = Duration(0);
        known->not_before = Instant();
      }
      continue;
    }
    Group& group = groups_[function.flow];
    group.flow = function.flow;
    group.name = name;
    group.tenant = tenant_of(function.record.config.tags);
    group.device = function.pipeline_device;
    group.program = function.kernel_task->pipeline;
    driver_.tell([device = group.device](Core& core, Instant now, Actions& out) {
      core.device(
          now, DeviceAppeared{{.gpu = device, .memory = kAnyMemory, .has_task_lanes = false, .only_seats = true}}, out);
    });
  }
}

void Pipelines::forget(Group& group, const std::string& why) {
  for (std::optional<Running>* running : {&group.current, &group.next}) {
    if (*running) slices_.give_back((*running)->placement);
    running->reset();
  }
  for (const Running& running : group.draining) slices_.give_back(running.placement);
  group.draining.clear();
  std::vector<InvocationId> open;
  for (const auto& [invocation, asked] : asked_) {
    if (asked.flow == group.flow) open.push_back(invocation);
  }
  for (const InvocationId invocation : open) fail_request(invocation, "Pipeline.Gone", why);
}

// It runs what it has, and takes nothing more.
void Pipelines::retire(Group& group) {
  for (std::optional<Running>* running : {&group.current, &group.next}) {
    if (*running) drain(group, *std::move(*running));
    running->reset();
  }
}

void Pipelines::drain(Group& group, Running running) {
  if (!running.instance) return slices_.give_back(running.placement);
  group.draining.push_back(std::move(running));
}

// ---- slices

void Pipelines::lose_slices(Group& group) {
  for (std::optional<Running>* running : {&group.current, &group.next}) {
    const auto lost = *running ? slices_.lost((*running)->placement) : std::nullopt;
    if (!lost) continue;
    const std::string why = fmt::format("slice {} (GPU {}) is gone", slice_type(*lost), lost->id.value());
    spdlog::warn("pipeline {}: {}; it is built anew on what is left", group.name, why);
    ++group.rebuilt;
    if ((*running)->instance) (*running)->instance->abandon(why);
    drain(group, *std::move(*running));
    running->reset();
  }
}

void Pipelines::place(Group& group) {
  if (monotonic_now() < group.not_before) return;
  auto placement = slices_.plan(group.program->dag);
  if (!placement) {
    group.lacking = placement.error().message;
    group.not_before = monotonic_now() + kFirstWait;  // a plan may take as long as its steps do
    return;
  }
  group.lacking.clear();
  group.current = reserve(*std::move(placement));
}

Pipelines::Running Pipelines::reserve(PipelinePlacement placement) {
  Running running{.number = ++last_number_, .placement = std::move(placement), .instance = nullptr};
  slices_.take(running.number, running.placement);
  return running;
}

// False: it cannot, and its slices were given back.
bool Pipelines::begin(Group& group, Running& running) {
  if (!slices_.are_empty(running.placement)) return true;
  if (Status begun = begin_now(group, running); !begun) {
    group.lacking = begun.error().message;
    spdlog::warn("pipeline {}: {}", group.name, group.lacking);
    slices_.give_back(running.placement);
    group.wait = std::clamp(2 * group.wait, kFirstWait, kMostWait);
    group.not_before = monotonic_now() + group.wait;
    return false;
  }
  return true;
}

Status Pipelines::begin_now(Group& group, Running& running) {
  const RegisteredFunction* const function = functions_.find(group.flow);
  PipelineInstance::Options options{
      .program = group.program, .tenant = group.tenant, .process = options_.servers, .stages = {}, .flow = {}};
  for (const PipelinePlacement::Stage& stage : running.placement.stages) {
    InstanceSpec shared{.function = group.name};
    shared.environment = options_.environment;
    give_share_(shared, stage.device.id, Share());
    options.stages.push_back({.gpu = stage.device.id,
                              .slice = stage.device.slice ? stage.device.slice->profile : stage.device.name,
                              .components = stage.components,
                              .environment = std::move(shared.environment)});
  }
  options.flow.ring_depth = pipeline_seats(*group.program);
  options.flow.retries = options_.retries;
  if (function != nullptr) options.flow.stage_limit = std::chrono::seconds(function->record.config.timeout_seconds);
  const FlowId flow = group.flow;
  const Number number = running.number;
  auto started = PipelineInstance::start(
      io_, std::move(options),
      {.ready = [this, flow, number] { post([=, this] { on_ready(flow, number); }); },
       .replied = [this, flow, number](PipelineInstance::Reply reply) { on_reply(flow, number, std::move(reply)); },
       .broken = [this, flow, number](const std::string& why) { post([=, this] { on_broken(flow, number, why); }); }});
  if (!started) return fail(started.error());
  running.instance = *std::move(started);
  return {};
}

// A slice that has room for all of it, and answers no later.
void Pipelines::improve(Group& group) {
  if (group.current->placement.stages.size() < 2 || monotonic_now() < group.not_before) return;
  const Dag& dag = group.program->dag;
  auto whole = slices_.plan_whole(dag, std::max(dag.objective, group.current->placement.latency));
  if (!whole) return;
  spdlog::info("pipeline {}: it moves to one slice: {}", group.name, whole->why);
  group.next = reserve(*std::move(whole));
}

void Pipelines::on_ready(FlowId flow, Number number) {
  Group* const group = find(flow);
  if (group == nullptr) return;
  if (group->next && group->next->number == number) {
    if (group->current) drain(*group, *std::move(group->current));
    group->current = std::exchange(group->next, std::nullopt);
    ++group->moves;
  }
  if (!group->current || group->current->number != number) return;
  group->wait = Duration(0);
  spdlog::info("pipeline {} runs: {}", group->name, group->current->placement.why);
  ready_places(*group);
  offer_waiting(*group);
}

void Pipelines::on_broken(FlowId flow, Number number, const std::string& why) {
  Group* const group = find(flow);
  if (group == nullptr) return;
  for (std::optional<Running>* running : {&group->current, &group->next}) {
    if (!*running || (*running)->number != number) continue;
    spdlog::warn("pipeline {} does not start: {}", group->name, why);
    slices_.give_back((*running)->placement);
    running->reset();
    group->wait = std::clamp(2 * group->wait, kFirstWait, kMostWait);
    group->not_before = monotonic_now() + group->wait;
    if (running == &group->current) group->lacking = why;
  }
  ready_places(*group);
}

// ---- places, which are instances for the core

// Those that wait for the pipeline are told that it is there; or, after a while, why not.
void Pipelines::ready_places(Group& group) {
  const bool runs = group.current && group.current->instance && group.current->instance->is_ready();
  std::vector<InstanceId> ready, given_up;
  for (auto& [id, place] : places_) {
    if (place.flow != group.flow || place.is_ready) continue;
    if (runs) ready.push_back(id);
    const bool lacks = !group.current && !group.lacking.empty();
    if (!runs && lacks && monotonic_now() - place.since >= options_.patience) given_up.push_back(id);
  }
  for (const InstanceId id : ready) {
    places_.at(id).is_ready = true;
    post([this, id] {
      if (places_.contains(id)) events_.next(id);
    });
  }
  for (const InstanceId id : given_up) end_place(id, group.lacking);
}

void Pipelines::end_place(InstanceId id, const std::string& why) {
  if (places_.erase(id) == 0) return;
  post([this, id, why] {
    events_.gone(id, ExitInfo{.exit_status = 1,
                              .signal = {},
                              .reason = why,
                              .init_error_payload = {},
                              .init_failure = {"Pipeline.NotPlaced", why}});
  });
}

void Pipelines::start(const StartOrder& order) {
  places_[order.instance] = {
      .flow = order.function.flow, .is_ready = false, .since = monotonic_now(), .gpu_time = Duration(0), .request = {}};
  if (!is_pipeline_device(order.gpu))
    return end_place(order.instance, "a pipeline's function has no instance on a device");
  const FlowId flow = order.function.flow;
  post([this, flow] {
    if (Group* const group = find(flow)) ready_places(*group);
  });
}

void Pipelines::kill(InstanceId instance) {
  const auto place = places_.find(instance);
  if (place == places_.end()) return;
  if (const auto request = place->second.request) {
    const auto asked = asked_.extract(*request);
    Group* const group = find(place->second.flow);
    if (!asked.empty() && group != nullptr) {
      std::erase(group->waiting, *request);
      if (const auto& at = asked.mapped().at) {
        by_request_.erase(*at);
        const auto cancel = [&](const Running& running) {
          if (running.number == at->first && running.instance) running.instance->cancel(at->second);
        };
        if (group->current) cancel(*group->current);
        for (const Running& running : group->draining) cancel(running);
      }
    }
  }
  end_place(instance, "stopped");
}

std::optional<DeviceUse> Pipelines::use(InstanceId instance) {
  const auto place = places_.find(instance);
  if (place == places_.end()) return std::nullopt;
  DeviceUse use;
  use.gpu_time = place->second.gpu_time;
  return use;
}

// ---- requests

Result<std::vector<std::string>> Pipelines::read_call(const Group& group, const std::string& payload) const {
  const KernelTask& interface = group.program->interface;
  auto call = wire::is_binary(payload) ? wire::decode_kernel_task_call(payload)
                                       : wire::kernel_task_call_from_json(interface, payload);
  if (!call) return fail(call.error());
  if (Status valid = validate_call(interface, *call); !valid) return fail(valid.error());
  std::vector<std::string> inputs(group.program->dag.inputs.size());
  for (CallBinding& input : call->inputs) {
    if (!input.key.empty()) {
      return fail(Errc::kInvalidArgument, "input {} is the object '{}': inputs of a pipeline come in the call",
                  interface.buffers[input.buffer].name, input.key);
    }
    inputs[input.buffer] = std::move(input.bytes);
  }
  for (const CallBinding& output : call->outputs) {
    if (output.key.empty()) continue;
    return fail(Errc::kInvalidArgument,
                "output {} is to be the object '{}': outputs of a pipeline are answered in the call",
                interface.buffers[output.buffer].name, output.key);
  }
  return inputs;
}

void Pipelines::deliver(InstanceId instance, DeliverRequest request) {
  Place& place = places_.at(instance);
  Group* const group = find(place.flow);
  place.request = request.id;
  Asked& asked = asked_[request.id];
  asked.invocation = request.id;
  asked.place = instance;
  asked.flow = place.flow;
  asked.deadline = monotonic_now() + std::chrono::milliseconds(request.deadline_epoch_ms - wall_clock_ms());
  asked.binary = wire::is_binary(request.invocation.payload);
  if (group == nullptr) {
    return post([this, id = request.id] { fail_request(id, "Pipeline.Gone", "the function is gone"); });
  }
  asked.program = group->program;
  auto inputs = read_call(*group, request.invocation.payload);
  if (!inputs) {
    return post(
        [this, id = request.id, why = inputs.error().message] { fail_request(id, "Pipeline.InvalidCall", why); });
  }
  asked.inputs = std::make_shared<const std::vector<std::string>>(*std::move(inputs));
  group->waiting.push_back(request.id);
  offer_waiting(*group);
}

void Pipelines::offer_waiting(Group& group) {
  while (!group.waiting.empty() && group.current && group.current->instance && group.current->instance->is_ready() &&
         group.current->instance->has_room()) {
    const InvocationId invocation = group.waiting.front();
    group.waiting.pop_front();
    Asked& asked = asked_.at(invocation);
    if (asked.program != group.program) {
      post([this, invocation] { fail_request(invocation, "Pipeline.Changed", "the function was changed"); });
      continue;
    }
    const PipelineRequestId id(++last_request_);
    asked.at = {group.current->number, id};
    by_request_[*asked.at] = invocation;
    group.current->instance->offer({.id = id, .inputs = asked.inputs, .deadline = asked.deadline});
  }
}

void Pipelines::on_reply(FlowId flow, Number number, PipelineInstance::Reply reply) {
  const auto known = by_request_.extract({number, reply.id});
  Group* const group = find(flow);
  if (known.empty() || group == nullptr) return;
  const InvocationId invocation = known.mapped();
  Asked& asked = asked_.at(invocation);
  asked.at.reset();
  if (const auto place = places_.find(asked.place); place != places_.end()) place->second.gpu_time += reply.gpu_time;
  if (reply.end == FlowEnd::kReturned && asked.returns++ < options_.retries) {
    // In the order in which they came: those that wait already came later.
    const auto later = std::find_if(group->waiting.begin(), group->waiting.end(),
                                    [&](InvocationId other) { return other > invocation; });
    group->waiting.insert(later, invocation);
  } else if (reply.end != FlowEnd::kAnswered) {
    fail_request(invocation, "Pipeline.Failed", reply.why);
  } else {
    KernelTaskAnswer content{.outputs = {}, .phases = reply.phases};
    const auto first = static_cast<std::uint32_t>(asked.program->dag.inputs.size());
    for (std::uint32_t o = 0; o < reply.outputs.size(); ++o) {
      if (reply.outputs[o])
        content.outputs.push_back({.buffer = first + o, .key = {}, .bytes = *std::move(reply.outputs[o])});
    }
    Answer answered{.invocation = invocation, .is_error = false, .content_type = {}, .payload = {}, .failure = {}};
    answered.content_type = asked.binary ? wire::kKernelTaskContentType : "application/json";
    answered.payload =
        asked.binary ? wire::encode(content) : wire::kernel_task_answer_to_json(asked.program->interface, content);
    answer(asked, std::move(answered));
  }
  if (Group* const still = find(flow)) offer_waiting(*still);
}

void Pipelines::fail_request(InvocationId invocation, const std::string& type, const std::string& message) {
  const auto asked = asked_.find(invocation);
  if (asked == asked_.end()) return;
  if (Group* const group = find(asked->second.flow)) std::erase(group->waiting, invocation);
  answer(asked->second,
         {.invocation = invocation, .is_error = true, .content_type = {}, .payload = {}, .failure = {type, message}});
}

void Pipelines::answer(Asked& asked, Answer reply) {
  const InstanceId id = asked.place;
  const InvocationId invocation = asked.invocation;
  if (asked.at) by_request_.erase(*asked.at);
  asked_.erase(invocation);
  const auto place = places_.find(id);
  if (place == places_.end()) return;
  place->second.request.reset();
  events_.answered(id, std::move(reply));
  if (places_.contains(id)) events_.next(id);
}

// ---- for people

std::string Pipelines::holder(GpuId gpu) const {
  const auto holder = slices_.holder(gpu);
  if (!holder) return "";
  for (const auto& [flow, group] : groups_) {
    const auto has_it = [&](const Running& running) { return running.number == *holder; };
    if ((group.current && has_it(*group.current)) || (group.next && has_it(*group.next)) ||
        std::any_of(group.draining.begin(), group.draining.end(), has_it)) {
      return group.name;
    }
  }
  return "";
}

std::vector<PipelineStatus> Pipelines::status() const {
  std::vector<PipelineStatus> list;
  for (const auto& [flow, group] : groups_) {
    PipelineStatus& one = list.emplace_back();
    one.function = group.name;
    one.waiting = group.waiting.size();
    one.draining = group.draining.size();
    one.moves = group.moves;
    one.rebuilt = group.rebuilt;
    one.why = group.current ? group.current->placement.why : group.lacking;
    const bool begun = group.current && group.current->instance;
    one.state = !group.current                         ? "no slices"
                : !begun                               ? "waits for its slices"
                : !group.current->instance->is_ready() ? "starts"
                : group.next                           ? "moves"
                                                       : "runs";
    if (!begun) continue;
    one.in_flight = group.current->instance->unanswered();
    for (const Running& running : group.draining) one.in_flight += running.instance->unanswered();
    for (const PipelineInstance::StageView& stage : group.current->instance->stages()) {
      one.stages.push_back({.gpu = stage.gpu,
                            .slice = stage.slice,
                            .components = stage.components,
                            .pid = stage.pid,
                            .is_ready = stage.is_ready,
                            .ring_used = stage.ring_used,
                            .ring_depth = stage.ring_depth,
                            .ring_bytes = stage.ring_bytes,
                            .requests = stage.requests,
                            .restarts = stage.restarts,
                            .gpu_time = stage.gpu_time});
    }
  }
  std::sort(list.begin(), list.end(),
            [](const PipelineStatus& a, const PipelineStatus& b) { return a.function < b.function; });
  return list;
}

}  // namespace fairlead

#include "node/pipelines.h"

#include <algorithm>
#include <iterator>
#include <tuple>
#include <utility>

#include "base/check.h"
#include "base/clock.h"
#include "base/log.h"
#include "model/tenant.h"
#include "node/pipeline_calls.h"
#include "wire/kernel_task_codec.h"

namespace fairlead {
namespace {

// Of the device of a pipeline's function: its slices' memory is counted by the planner.
constexpr Bytes kAnyMemory{std::int64_t{1} << 50};
constexpr Duration kPlanPause = std::chrono::seconds(1);   // between two plans of one function, which may take long
constexpr Duration kUseWindow = std::chrono::seconds(1);   // over which utilisation is measured
constexpr Duration kSoon = std::chrono::milliseconds(20);  // while slices change hands
constexpr Duration kTurnPause = std::chrono::milliseconds(100);  // as kPlanPause, where a request waits for its turn
constexpr Duration kTriedAgain = std::chrono::seconds(1);        // who calls again within that has waited all the time
constexpr Duration kPlanTime = std::chrono::milliseconds(5);     // of one tick
constexpr std::size_t kMostPlaced = 8;                           // that are planned in one tick and found no place
constexpr std::size_t kMostLeavers = 8;                          // that are planned on, for one who waits
constexpr std::size_t kLarge = std::size_t{256} << 10;           // an answer above it is made on the worker

// Of Pipelines::Group.
bool is_away(const auto& group) {
  return group.keep.state() == KeepAliveState::kCold || group.keep.state() == KeepAliveState::kWarm;
}
bool runs(const auto& group) {
  return group.current && group.current->instance && group.current->instance->is_ready();
}
bool is_busy(const auto& group) {
  return !group.waiting.empty() || (runs(group) && group.current->instance->unanswered() > 0);
}

bool is_wanted(const InstanceEvents& events, InvocationId invocation) {
  return !events.is_wanted || events.is_wanted(invocation);
}

// The slices that these holders have, and what any pipeline leaves now for nobody.
std::vector<Device> held_in_time(const PipelineSlices& slices_of, const auto& holders,
                                 const std::vector<std::size_t>& leavers, const auto& groups, const auto& leaving) {
  std::map<GpuId, Device> held;
  const auto add = [&held](const auto& running) {
    for (const Device& device : running.placement.slices()) held.emplace(device.id, device);
  };
  const auto add_unpromised = [&](const auto& running) {
    for (const Device& device : running.placement.slices()) {
      if (!slices_of.is_promised(device.id)) held.emplace(device.id, device);
    }
  };
  for (const std::size_t leaver : leavers) {
    add(*holders[leaver]->current);
    if (holders[leaver]->next) add(*holders[leaver]->next);
  }
  for (const auto& [flow, group] : groups) std::for_each(group.draining.begin(), group.draining.end(), add_unpromised);
  std::for_each(leaving.begin(), leaving.end(), add_unpromised);
  std::vector<Device> slices;
  for (const auto& [id, device] : held) slices.push_back(device);
  return slices;
}

PipelineInstance::LaunchProgram launch_of(const ProgramLauncher& launcher,
                                          std::shared_ptr<const PipelineProgram> program,
                                          const FunctionRecord& record) {
  return [launcher, program = std::move(program), path = record.code_path, memory = mib(record.config.memory_mib),
          environment = record.config.environment](std::size_t component) -> Result<ProgramLaunch> {
    return launcher({.code_path = path,
                     .component = program->dag.components[component].name,
                     .memory = memory,
                     .environment = environment});
  };
}

}  // namespace

Pipelines::Pipelines(boost::asio::io_context& io, PipelinesOptions options, CoreDriver& driver, Functions& functions,
                     InstanceEvents events)
    : jobs_(io),
      options_(std::move(options)),
      driver_(driver),
      functions_(functions),
      events_(std::move(events)),
      slices_(driver, functions, options_.times),
      cutter_(io, options_.cutter, slices_,
              {.look_soon = [this] { slices_.look_soon(); },
               .still_wants =
                   [this](const std::string& name, const PipelineProgram* program) {
                     return std::any_of(groups_.begin(), groups_.end(), [&](const auto& entry) {
                       const Group& group = entry.second;
                       return group.name == name && group.program.get() == program && !group.current && !is_away(group);
                     });
                   }}),
      worker_(io) {}

void Pipelines::connect(PipelineSlices::Devices devices) {
  slices_.connect(std::move(devices));
}

Pipelines::Group* Pipelines::find(FlowId flow) {
  const auto found = groups_.find(flow);
  return found == groups_.end() ? nullptr : &found->second;
}

PipelineInstance* Pipelines::instance(Number number) {
  const auto in = [number](const Running& one) { return one.number == number ? one.instance.get() : nullptr; };
  for (auto& [flow, group] : groups_) {
    for (std::optional<Running>* running : {&group.current, &group.next}) {
      if (*running && (*running)->number == number) return in(**running);
    }
    for (const Running& running : group.draining) {
      if (running.number == number) return in(running);
    }
  }
  for (const Running& running : leaving_) {
    if (running.number == number) return in(running);
  }
  return nullptr;
}

void Pipelines::tick() {
  meet_functions();
  std::erase_if(leaving_, [this](const Running& running) {
    if (running.instance->has_processes() || !running.instance->is_empty()) return false;
    slices_.give_back(running.number, running.placement);
    return true;
  });
  for (auto& [flow, group] : groups_) {
    settle(group);
    note_use(group);
  }
  cutter_.tick();
  if (!groups_.empty()) arrange();
  for (auto& [flow, group] : groups_) {
    for (std::optional<Running>* running : {&group.current, &group.next}) {
      if (*running && !(*running)->instance) begin(group, *running);
    }
    ready_places(group);
  }
  const auto changes = [](const auto& entry) {
    const Group& group = entry.second;
    const auto waits_for_slices = [](const std::optional<Running>& running) { return running && !running->instance; };
    return !group.draining.empty() || waits_for_slices(group.current) || waits_for_slices(group.next) ||
           (!group.current && !is_away(group) && !group.starts.is_broken() && is_busy(group));
  };
  if (!leaving_.empty() || std::any_of(groups_.begin(), groups_.end(), changes)) jobs_.soon(kSoon, [this] { tick(); });
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
    std::vector<InvocationId> open;
    for (const auto& [invocation, asked] : asked_) {
      if (asked.flow == group.flow) open.push_back(invocation);
    }
    for (const InvocationId invocation : open) fail_request(invocation, "Pipeline.Gone", "the function is gone");
    retire(group);
    for (Running& running : std::exchange(group.draining, {})) {
      std::optional<Running> one(std::move(running));
      end(one, "the function is gone");
    }
    driver_.tell(
        [device = group.device](Core& core, Instant now, Actions& out) { core.device(now, DeviceWent{device}, out); });
    groups_.erase(flow);
    unready_.erase(flow);
  }
  for (const auto& [name, function] : functions_.all()) {
    if (!function.is_pipeline()) continue;
    if (Group* const known = find(function.flow)) {
      if (known->program != function.kernel_task->pipeline) meet(*known, function);
      continue;
    }
    Group& group = groups_[function.flow];
    group.flow = function.flow;
    group.name = name;
    group.tenant = tenant_of(function.record.config.tags);
    group.device = function.pipeline_device;
    meet(group, function);
    driver_.tell([device = group.device](Core& core, Instant now, Actions& out) {
      core.device(
          now, DeviceAppeared{{.gpu = device, .memory = kAnyMemory, .has_task_lanes = false, .only_seats = true}}, out);
    });
  }
}

// It is new, or has another program. That is as a first request: it gets slices.
void Pipelines::meet(Group& group, const RegisteredFunction& function) {
  retire(group);
  group.program = function.kernel_task->pipeline;
  group.starts = group.moving = StartAttempts(options_.starts);
  group.keep = KeepAlive(options_.keep);
  group.used = group.measured = monotonic_now();
  group.lacks_since.reset();
  group.keep.on_request(group.used);
}

// It runs what it has, and takes nothing more.
void Pipelines::retire(Group& group) {
  drain(group, group.current);
  drain(group, group.next);
}

void Pipelines::drain(Group& group, std::optional<Running>& running) {
  if (!running || !running->instance) return end(running, "");
  group.draining.push_back(*std::exchange(running, std::nullopt));
}

// Its slices come back when its processes are gone.
void Pipelines::end(std::optional<Running>& running, const std::string& why) {
  if (!running) return;
  if (running->instance) running->instance->abandon(why);
  Running ended = *std::exchange(running, std::nullopt);
  if (!ended.instance) return slices_.give_back(ended.number, ended.placement);
  leaving_.push_back(std::move(ended));
}

// ---- slices

void Pipelines::settle(Group& group) {
  for (std::optional<Running>* running : {&group.current, &group.next}) {
    const std::string lost = *running ? slices_.lost((*running)->placement) : "";
    if (lost.empty()) continue;
    spdlog::warn("pipeline {}: {}; it is built anew on what is left", group.name, lost);
    ++group.rebuilt;
    if ((*running)->instance) (*running)->instance->abandon(lost);
    drain(group, *running);
  }
  // Those that have run what they had, leave.
  std::erase_if(group.draining, [this](Running& running) {
    const auto open = by_request_.lower_bound({running.number, PipelineRequestId()});
    const bool is_heard =
        open == by_request_.end() || open->first.first != running.number;  // its last replies are posted
    if (running.instance->unanswered() > 0 || !is_heard) return false;
    std::optional<Running> one(std::move(running));
    end(one, "it has run what it had");
    return true;
  });
}

// Hot, time sharing, cold: by what its requests take of the slices that it has.
void Pipelines::note_use(Group& group) {
  const Instant now = monotonic_now();
  if (is_busy(group)) group.used = now;
  if (group.current || now - group.used > kTriedAgain) {
    group.wanted_since.reset();
  } else if (!group.wanted_since && is_busy(group)) {
    group.wanted_since = now;
  }
  if (runs(group) && now - group.measured >= kUseWindow) {
    const auto stages = static_cast<double>(group.current->placement.slices().size());
    const double busy = to_seconds(std::exchange(group.gpu_time, Duration(0)));
    group.keep.on_utilisation(now, busy / stages / to_seconds(now - group.measured));
    group.measured = now;
  }
  if (is_busy(group) || group.keep.wake(now) != KeepAliveState::kCold || !group.current) return;
  spdlog::info("pipeline {}: nobody has called it for {:.3g} s: it gives its slices back", group.name,
               to_seconds(options_.keep.cold_after));
  evict(group);
}

// It runs what it has, and takes slices again when somebody calls it.
void Pipelines::evict(Group& group) {
  const Instant now = monotonic_now();
  retire(group);
  group.lacking.clear();
  group.lacks_since.reset();
  if (group.keep.on_evicted(now) == KeepAliveState::kExclusiveHot) group.keep.on_lost(now, true);
  if (!group.waiting.empty()) group.keep.on_request(now);
}

// Those that want slices get some; of others, where none are free.
void Pipelines::arrange() {
  const Instant now = monotonic_now();
  std::vector<Group*> holders;
  std::vector<SliceHolder> held;
  std::map<std::string, int> leaving;
  for (auto& [flow, group] : groups_) {
    for (const Running& running : group.draining) leaving[group.tenant] += compute_slices(running.placement);
    if (!group.current) continue;
    holders.push_back(&group);
    held.push_back({.tenant = group.tenant,
                    .slices = compute_slices(group.current->placement),
                    .idle = is_busy(group) ? Duration(0) : std::max(Duration(1), now - group.used),
                    .held = now - group.current->since,
                    .may_leave = runs(group) && !group.next,
                    .is_hot = group.keep.state() == KeepAliveState::kExclusiveHot,
                    .comes_back = group.comes_back,
                    .gap = group.gap});
  }
  const SliceClaims claims(options_.claims, options_.weights ? options_.weights() : std::map<std::string, double>(),
                           held, std::move(leaving));
  struct Waiting {
    Group* group;
    Duration waited;
    std::tuple<bool, double, Duration> key;  // who has least goes first
  };
  std::vector<Waiting> waiting;
  for (auto& [flow, group] : groups_) {
    if (group.current || is_away(group)) continue;
    const Duration waits = group.wanted_since ? std::max(Duration(1), now - *group.wanted_since) : Duration(0);
    waiting.push_back({&group, waits, {waits == Duration(0), claims.load_with_leaving(group.tenant), -waits}});
  }
  std::stable_sort(waiting.begin(), waiting.end(), [](const Waiting& a, const Waiting& b) { return a.key < b.key; });
  if (!waiting.empty()) slices_.begin_round();
  std::size_t missed = 0;
  bool is_awaited = false, has_gone = false;  // slices by somebody; somebody for another
  for (const Waiting& claim : waiting) {
    Group& group = *claim.group;
    if (group.starts.may(now) && missed < kMostPlaced && monotonic_now() - now < kPlanTime) {
      has_gone = place(group, claim.waited, claims, holders);
      if (has_gone) break;  // what is said of holders is no longer so
      if (group.current) continue;
      ++missed;
    }
    if (!group.turn || claim.waited == Duration(0)) continue;
    is_awaited = true;
    if (claims.comes_first({.tenant = group.tenant, .waited = claim.waited})) slices_.save(*group.turn);
  }
  if (!has_gone && !holders.empty() && slices_.others_wait(now)) {
    const auto longest = std::max_element(held.begin(), held.end(), [](const SliceHolder& a, const SliceHolder& b) {
      return std::pair(a.may_leave, a.idle) < std::pair(b.may_leave, b.idle);
    });
    const bool is_one = longest != held.end() && longest->may_leave && longest->idle >= options_.claims.idle;
    has_gone = is_one && leaving_.empty();
    if (has_gone) evict(*holders[static_cast<std::size_t>(longest - held.begin())]);
  }
  for (Group* group : holders) {
    if (!has_gone && !is_awaited && runs(*group) && !group->next) improve(*group);
  }
  slices_.end_round();
}

// Whether others had to go for it.
bool Pipelines::place(Group& group, Duration waited, const SliceClaims& claims, const std::vector<Group*>& holders) {
  const auto take = [&](PipelinePlacement placement) {
    group.lacking.clear();
    group.turn.reset();
    group.had_turn = monotonic_now();
    group.lacks_since.reset();
    group.current = reserve(group, std::move(placement));
  };
  auto placement = slices_.plan(*group.program);
  if (placement) {
    take(*std::move(placement));
    return false;
  }
  const std::vector<std::size_t> leavers =
      claims.leavers_for({.tenant = group.tenant, .waited = group.waiting.empty() ? Duration(0) : waited});
  std::vector<Device> left;
  for (std::size_t i = 0; i < leavers.size(); ++i) {
    for (const Device& device : holders[leavers[i]]->current->placement.slices()) left.push_back(device);
    if (i >= kMostLeavers && i + 1 < leavers.size()) continue;  // of many, all at once
    auto with = slices_.plan(*group.program, left);
    if (!with) continue;
    for (const std::size_t one : leavers) {
      const std::vector<Device> wanted = with->slices(), had = holders[one]->current->placement.slices();
      const auto is_taken = [&](const Device& device) {
        return std::any_of(wanted.begin(), wanted.end(), [&](const Device& want) { return want.id == device.id; });
      };
      if (std::none_of(had.begin(), had.end(), is_taken)) continue;
      spdlog::info("pipeline {}: it gives its slices up for {}", holders[one]->name, group.name);
      evict(*holders[one]);
    }
    take(*std::move(with));
    return true;
  }
  const Instant now = monotonic_now();
  group.turn = slices_.plan_in_time(
      *group.program, held_in_time(slices_, holders, claims.leavers_in_time(group.tenant), groups_, leaving_));
  if (group.turn) group.had_turn = now;
  group.lacking = group.turn ? "other pipelines have the slices that it fits on: it gets some in its turn"
                             : placement.error().message;
  if (!group.lacks_since) group.lacks_since = now;
  group.starts.put_off(now + (group.turn && waited > Duration(0) ? kTurnPause : kPlanPause));
  const RegisteredFunction* const function = functions_.find(group.flow);
  if (function != nullptr) cutter_.want(*function, now - *group.lacks_since);
  return false;
}

Pipelines::Running Pipelines::reserve(const Group& group, PipelinePlacement placement) {
  Running running{.number = ++last_number_,
                  .function = group.name,
                  .placement = std::move(placement),
                  .reserved = monotonic_now(),
                  .since = monotonic_now(),
                  .instance = nullptr};
  slices_.take(running.number, running.placement);
  return running;
}

void Pipelines::begin(Group& group, std::optional<Running>& running) {
  if (!slices_.are_held(running->number, running->placement)) {  // others run what they have there
    const Instant now = running->since = monotonic_now();
    if (now - running->reserved < options_.turn_patience) return;
    group.lacking = "the pipelines that had its slices still run what they have there";
    end(running, "");
    return (&running == &group.next ? group.moving : group.starts).put_off(now + kPlanPause);
  }
  if (!slices_.are_empty(running->number, running->placement)) {
    if (monotonic_now() - running->since < options_.empty_limit) return;
    return start_failed(group, running,
                        fmt::format("its slices were not free {:.3g} s after they were taken for it: what ran there "
                                    "has not ended",
                                    to_seconds(options_.empty_limit)));
  }
  running->since = monotonic_now();
  if (Status begun = begin_now(group, *running); !begun) start_failed(group, running, begun.error().message);
}

Status Pipelines::begin_now(Group& group, Running& running) {
  const RegisteredFunction* const function = functions_.find(group.flow);
  PipelineInstance::Options options{.name = group.name,
                                    .program = group.program,
                                    .tenant = group.tenant,
                                    .process = options_.servers,
                                    .stages = {},
                                    .flow = {},
                                    .start_limit = options_.start_limit};
  std::vector<std::string> types;  // of the stages' slices
  for (const PipelinePlacement::Stage& stage : running.placement.stages) {
    types.push_back(stage.has_slice() ? slice_type(stage.device) : "host");
    InstanceSpec shared{.function = group.name};
    shared.environment = options_.environment;
    if (stage.has_slice()) slices_.give_share(shared, stage.device.id);
    options.stages.push_back({.gpu = stage.device.id,
                              .slice = !stage.has_slice()   ? "host"
                                       : stage.device.slice ? stage.device.slice->profile
                                                            : stage.device.name,
                              .components = stage.components,
                              .environment = std::move(shared.environment)});
  }
  options.rings = options_.rings;
  options.flow.ring_depth = pipeline_seats(*group.program);
  options.flow.retries = options_.retries;
  if (function != nullptr) {
    options.flow.stage_limit = std::chrono::seconds(function->record.config.timeout_seconds);
    if (options_.launch_program)
      options.launch_program = launch_of(options_.launch_program, group.program, function->record);
  }
  const FlowId flow = group.flow;
  const Number number = running.number;
  const auto later = [this](auto job) { jobs_.post(std::move(job)); };
  const auto broken = [this, flow, number](const std::string& why) {
    Group* const its = find(flow);
    if (its == nullptr) return;
    for (std::optional<Running>* one : {&its->current, &its->next}) {
      if (*one && (*one)->number == number) start_failed(*its, *one, why);
    }
  };
  auto started = PipelineInstance::start(
      jobs_.io(), std::move(options),
      {.ready = [=, this] { later([=, this] { on_ready(flow, number); }); },
       .replied = [=, this](PipelineInstance::Reply reply) { on_reply(flow, number, std::move(reply)); },
       .ran =
           [this, program = group.program, types = std::move(types)](std::size_t stage, std::size_t component,
                                                                     Duration gpu_time) {
             const std::string& content = program->tasks[component].kind.content;
             if (!content.empty()) options_.times->ran(content, types[stage], gpu_time);
           },
       .broken = [=](const std::string& why) { later([=] { broken(why); }); },
       .used = [=, this](Duration gpu_time) { driver_.core().owes(flow, gpu_time); }});
  if (!started) return fail(started.error());
  running.instance = *std::move(started);
  return {};
}

// A slice that has room for all of it, and answers no later.
void Pipelines::improve(Group& group) {
  if (group.current->placement.slices().size() < 2 || !group.moving.may(monotonic_now())) return;
  auto whole = slices_.plan_whole(*group.program, group.current->placement);
  if (!whole) return group.moving.put_off(monotonic_now() + kPlanPause);
  spdlog::info("pipeline {}: it moves to one slice: {}", group.name, whole->why);
  group.next = reserve(group, *std::move(whole));
}

void Pipelines::on_ready(FlowId flow, Number number) {
  Group* const group = find(flow);
  if (group == nullptr) return;
  if (group->next && group->next->number == number) {
    drain(*group, group->current);
    group->current = std::exchange(group->next, std::nullopt);
    ++group->moves;
  }
  if (!group->current || group->current->number != number) return;
  group->starts.reset();
  group->moving.reset();
  group->used = group->measured = monotonic_now();
  group->comes_back = group->used - group->current->since;
  group->current->since = group->used;
  spdlog::info("pipeline {} runs: {}", group->name, group->current->placement.why);
  ready_places(*group);
  offer_waiting(*group);
}

// While it backs off it has no slices.
void Pipelines::start_failed(Group& group, std::optional<Running>& running, const std::string& why) {
  spdlog::warn("pipeline {} does not start: {}", group.name, why);
  const bool is_move = &running == &group.next;
  end(running, why);
  if (is_move) return group.moving.failed(monotonic_now(), why);
  group.starts.failed(monotonic_now(), why);
  group.lacking = why;
  if (group.starts.is_broken()) {
    group.lacking = broken_words(group.starts);
    spdlog::error("pipeline {}: {}", group.name, group.lacking);
    for (const InvocationId invocation : std::exchange(group.waiting, {})) {
      fail_request(invocation, "Pipeline.Broken", group.lacking);
    }
  }
  ready_places(group);
}

// ---- places, which are instances for the core

// Those that wait for the pipeline are told that it is there, or that it has no slices yet: then requests wait here. What waits for too long is
// told why.
void Pipelines::ready_places(Group& group) {
  if (runs(group) || !group.current) {
    for (const InstanceId id : std::exchange(unready_[group.flow], {})) {
      jobs_.post([this, id] {
        if (places_.contains(id)) events_.next(id);
      });
    }
  }
  const bool is_cut_for = !cutter_.doing_for(group.name).empty();  // it is worth a wait
  if (group.current || group.lacking.empty() || is_cut_for) return;
  const Instant now = monotonic_now();
  const auto is_late = [&](InvocationId waits) {
    const Instant since = asked_.at(waits).since;
    const bool hopes = group.turn || now - std::max(since, group.had_turn) < options_.patience;
    return !hopes || now - since >= options_.turn_patience;
  };
  std::vector<InvocationId> late;
  std::copy_if(group.waiting.begin(), group.waiting.end(), std::back_inserter(late), is_late);
  for (const InvocationId invocation : late) fail_request(invocation, "Pipeline.NotPlaced", group.lacking);
}

void Pipelines::end_place(InstanceId id, const std::string& why) {
  const auto place = places_.extract(id);
  if (place.empty()) return;
  if (const auto its = unready_.find(place.mapped().flow); its != unready_.end()) its->second.erase(id);
  jobs_.post([this, id, why] {
    events_.gone(id, ExitInfo{.exit_status = 1,
                              .signal = {},
                              .reason = why,
                              .init_error_payload = {},
                              .init_failure = {"Pipeline.NotPlaced", why}});
  });
}

void Pipelines::start(const StartOrder& order) {
  places_[order.instance] = {.flow = order.function.flow, .gpu_time = Duration(0), .request = {}};
  if (!is_pipeline_device(order.gpu))
    return end_place(order.instance, "a pipeline's function has no instance on a device");
  const FlowId flow = order.function.flow;
  unready_[flow].insert(order.instance);
  jobs_.post([this, flow] {
    if (Group* const group = find(flow)) ready_places(*group);
  });
}

// It claims no slices for nobody; in a pipeline it runs on. Nothing is kept as its answer: who asks again under its id is served.
void Pipelines::abandoned(InvocationId invocation) {
  jobs_.post([this, invocation] {
    const auto asked = asked_.find(invocation);
    Group* const group = asked == asked_.end() ? nullptr : find(asked->second.flow);
    if (group == nullptr || is_wanted(events_, invocation) || std::erase(group->waiting, invocation) == 0) return;
    answer(asked->second, {.invocation = invocation,
                           .is_error = true,
                           .content_type = {},
                           .payload = {},
                           .failure = {"Pipeline.Abandoned", "its client went away while it waited for slices"},
                           .is_nodes_fault = true});
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
        if (PipelineInstance* const its = this->instance(at->first)) its->cancel(at->second);
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

void Pipelines::deliver(InstanceId instance, DeliverRequest request) {
  Place& place = places_.at(instance);
  place.request = request.id;
  Asked& asked = asked_[request.id];
  asked.invocation = request.id;
  asked.place = instance;
  asked.flow = place.flow;
  asked.deadline = monotonic_now() + std::chrono::milliseconds(request.deadline_epoch_ms - wall_clock_ms());
  asked.binary = wire::is_binary(request.invocation.payload);
  const auto refuse = [this, id = request.id](std::string type, std::string why) {
    jobs_.post([this, id, type, why] { fail_request(id, type, why); });
  };
  Group* const group = find(place.flow);
  const RegisteredFunction* const function = functions_.find(place.flow);
  if (group == nullptr || function == nullptr || !function->is_pipeline())
    return refuse("Pipeline.Gone", "the function is gone");
  if (function->kernel_task->pipeline != group->program) meet(*group, *function);
  const Instant now = group->used = monotonic_now();
  if (group->asked) {
    const Duration gap = now - *group->asked;
    group->gap = group->gap == Duration::max() ? gap : (3 * group->gap + gap) / 4;
  }
  group->asked = now;
  group->starts.ask(now);
  if (group->starts.is_broken()) return refuse("Pipeline.Broken", broken_words(group->starts));
  asked.program = group->program;
  auto inputs = read_pipeline_call(*group->program, request.invocation.payload);
  if (!inputs) return refuse("Pipeline.InvalidCall", inputs.error().message);
  asked.inputs = std::make_shared<const std::vector<std::string>>(*std::move(inputs));
  asked.since = now;
  group->waiting.push_back(request.id);
  group->keep.on_request(now);
  if (group->current) return offer_waiting(*group);
  jobs_.soon(Duration(0), [this] { tick(); });
}

void Pipelines::offer_waiting(Group& group) {
  while (!group.waiting.empty() && runs(group) && group.current->instance->has_room()) {
    const InvocationId invocation = group.waiting.front();
    group.waiting.pop_front();
    Asked& asked = asked_.at(invocation);
    if (asked.program != group.program) {
      jobs_.post([this, invocation] { fail_request(invocation, "Pipeline.Changed", "the function was changed"); });
      continue;
    }
    const PipelineRequestId id(++last_number_);
    asked.at = {group.current->number, id};
    by_request_[*asked.at] = invocation;
    asked.has_begun = true;
    group.current->instance->offer(
        {.id = id, .inputs = asked.inputs, .deadline = asked.deadline, .progress = asked.progress});
  }
}

void Pipelines::on_reply(FlowId flow, Number number, PipelineInstance::Reply reply) {
  const auto known = by_request_.extract({number, reply.id});
  Group* const group = find(flow);
  PipelineInstance* const from = instance(number);
  FL_CHECK(from != nullptr, "pipeline {} answers, and is not there", number);
  if (known.empty() || group == nullptr) return from->taken(reply.id);  // what it used was charged with the time it had
  group->gpu_time += reply.gpu_time;
  const InvocationId invocation = known.mapped();
  Asked& asked = asked_.at(invocation);
  asked.at.reset();
  if (const auto place = places_.find(asked.place); place != places_.end()) place->second.gpu_time += reply.gpu_time;
  if (reply.end == FlowEnd::kReturned) {
    // In the order in which they came: those that wait already came later.
    const auto later = std::find_if(group->waiting.begin(), group->waiting.end(),
                                    [&](InvocationId other) { return other > invocation; });
    group->waiting.insert(later, invocation);
    asked.since = monotonic_now();
    asked.progress = std::move(reply.progress);
    group->keep.on_request(asked.since);
    if (!is_wanted(events_, invocation)) abandoned(invocation);
  } else if (reply.end != FlowEnd::kAnswered) {
    fail_request(invocation, "Pipeline.Failed", reply.why);
  } else if (size_of(reply) < kLarge) {
    Answer made = pipeline_answer(invocation, asked.binary, *asked.program, reply);
    from->taken(reply.id);
    answer(asked, std::move(made));
  } else {
    const PipelineRequestId id = reply.id;
    worker_.run([invocation, binary = asked.binary, program = asked.program,
                 reply = std::move(reply)] { return pipeline_answer(invocation, binary, *program, reply); },
                jobs_.guarded([this, id, flow, number](Answer made) {
                  if (PipelineInstance* const its = instance(number)) its->taken(id);
                  const auto waits = asked_.find(made.invocation);
                  if (waits != asked_.end()) answer(waits->second, std::move(made));
                  if (Group* const still = find(flow)) offer_waiting(*still);
                }));
    return;
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
  const bool has_begun = asked.has_begun;
  if (asked.at) by_request_.erase(*asked.at);
  asked_.erase(invocation);
  const auto place = places_.find(id);
  if (place == places_.end()) return;
  // No time at all would be taken for a time that nobody measured, and the whole wait be charged.
  if (!has_begun) place->second.gpu_time += Duration(1);
  place->second.request.reset();
  events_.answered(id, std::move(reply));
  if (places_.contains(id)) events_.next(id);
}

// ---- for people

std::string Pipelines::holder(GpuId gpu) const {
  const auto holder = slices_.holder(gpu);
  if (!holder) return "";
  if (*holder == SliceCutter::kHolder) return "(slices that are cut anew)";
  const auto has_it = [&](const Running& running) { return running.number == *holder; };
  for (const auto& [flow, group] : groups_) {
    if ((group.current && has_it(*group.current)) || (group.next && has_it(*group.next)) ||
        std::any_of(group.draining.begin(), group.draining.end(), has_it)) {
      return group.name;
    }
  }
  const auto leaves = std::find_if(leaving_.begin(), leaving_.end(), has_it);
  return leaves == leaving_.end() ? "" : leaves->function;
}

std::vector<PipelineStatus> Pipelines::status() const {
  std::vector<PipelineStatus> list;
  for (const auto& [flow, group] : groups_) {
    PipelineStatus& one = list.emplace_back();
    one.function = group.name;
    one.waiting = group.waiting.size();
    const auto leaves = [&](const Running& running) { return running.function == group.name; };
    one.draining =
        group.draining.size() + static_cast<std::size_t>(std::count_if(leaving_.begin(), leaving_.end(), leaves));
    one.moves = group.moves;
    one.rebuilt = group.rebuilt;
    one.why = group.current ? group.current->placement.why : group.lacking;
    const bool begun = group.current && group.current->instance;
    one.state = runs(group)                   ? (group.next ? "moves" : "runs")
                : begun                       ? "starts"
                : group.current               ? "waits for its slices"
                : group.starts.is_broken()    ? "broken"
                : is_away(group)              ? keep_alive_name(group.keep.state())
                : group.starts.failures() > 0 ? "backs off"
                : group.turn                  ? "waits for its turn"
                                              : "no slices";
    const std::string cut = cutter_.doing_for(group.name);
    if (!cut.empty()) one.why += "; " + cut;
    if (!group.current && is_away(group)) one.why = "nobody called it: it takes slices when somebody does";
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

#include "runtime/pipeline/pipeline_instance.h"

#include <algorithm>
#include <boost/asio/post.hpp>
#include <set>
#include <utility>

#include "base/check.h"
#include "base/clock.h"
#include "base/log.h"

namespace fairlead {
namespace {

constexpr Duration kFirstWait = std::chrono::milliseconds(100);
constexpr Duration kLongEnough = std::chrono::minutes(1);  // ready for so long, and the next restart is at once

void add(TaskPhases& sum, const TaskPhases& more) {
  sum.kernel_run += more.kernel_run;
  sum.device_malloc += more.device_malloc;
  sum.device_copy += more.device_copy;
  sum.overhead += more.overhead;
}

// Whether a scalar is not zero; of numbers, -0 is zero.
bool is_set(std::string_view bytes, ElementType type) {
  if (type == ElementType::kF32 || type == ElementType::kF64 || type == ElementType::kF16 ||
      type == ElementType::kBf16) {
    if ((static_cast<unsigned char>(bytes.back()) & 0x7fU) != 0) return true;
    bytes.remove_suffix(1);
  }
  return std::any_of(bytes.begin(), bytes.end(), [](char byte) { return byte != 0; });
}

bool decides(const Dag& dag, std::size_t component, std::size_t port) {
  return std::any_of(dag.components.begin(), dag.components.end(), [&](const Component& one) {
    return one.when && one.when->value == TensorSource{component, port};
  });
}

// By one of `readers`, on the device.
bool is_read(const Dag& dag, const std::vector<std::size_t>& readers, const TensorSource& tensor) {
  return std::any_of(readers.begin(), readers.end(), [&](std::size_t one) {
    if (!dag.components[one].needs_gpu || !dag.components[*tensor.component].needs_gpu) return false;
    const auto& inputs = dag.components[one].inputs;
    return std::any_of(inputs.begin(), inputs.end(), [&](const ComponentInput& input) {
      return std::find(input.sources.begin(), input.sources.end(), tensor) != input.sources.end();
    });
  });
}

std::vector<std::vector<std::size_t>> components_of(const std::vector<PlacedStage>& stages) {
  std::vector<std::vector<std::size_t>> all;
  for (const PlacedStage& stage : stages) all.push_back(stage.components);
  return all;
}

std::size_t slot_of(const RequestFlow::Run& run, std::size_t stage) {
  if (stage == run.writes.stage) return run.writes.slot;
  const auto found =
      std::find_if(run.reads.begin(), run.reads.end(), [stage](const RingSlot& slot) { return slot.stage == stage; });
  FL_CHECK(found != run.reads.end(), "stage {} reads nothing of stage {}", run.stage, stage);
  return found->slot;
}

}  // namespace

Result<std::unique_ptr<PipelineInstance>> PipelineInstance::start(boost::asio::io_context& io, Options options,
                                                                  Events events) {
  std::vector<FlowStage> stages;
  for (const PlacedStage& stage : options.stages) stages.push_back({.components = stage.components});
  auto flow = RequestFlow::make(options.program->dag, stages, options.flow);
  if (!flow) return fail(flow.error());
  std::unique_ptr<PipelineInstance> made(
      new PipelineInstance(io, std::move(options), *std::move(flow), std::move(events)));
  if (Status rings = made->make_rings(); !rings) return fail(rings.error());
  RequestFlow::Actions none;  // nothing follows: no request is there yet
  for (std::size_t stage = 0; stage < made->stages_.size(); ++stage) {
    made->flow_.lost(monotonic_now(), stage, 0, "it starts", none);
    made->start_process(stage);
  }
  return made;
}

PipelineInstance::PipelineInstance(boost::asio::io_context& io, Options options, RequestFlow flow, Events events)
    : io_(io),
      options_(std::move(options)),
      flow_(std::move(flow)),
      events_(std::move(events)),
      places_(options_.program->dag, components_of(options_.stages)),
      timer_(io) {
  for (std::size_t s = 0; s < options_.stages.size(); ++s) {
    Stage& stage = stages_.emplace_back();
    stage.timer = std::make_unique<boost::asio::steady_timer>(io_);
    stage.view = {.gpu = options_.stages[s].gpu, .slice = options_.stages[s].slice};
    stage.view.ring_depth = options_.flow.ring_depth;
    for (const std::size_t component : options_.stages[s].components) {
      stage.view.components.push_back(options_.program->dag.components[component].name);
    }
  }
}

PipelineInstance::~PipelineInstance() = default;

// Of each tensor that leaves its device.
Status PipelineInstance::make_rings() {
  const Dag& dag = options_.program->dag;
  const auto shape_of = [&](std::size_t component, std::size_t port) {
    const auto bytes = static_cast<std::uint64_t>(dag.components[component].outputs[port].bytes().count());
    return wire::StageRingShape{static_cast<std::uint32_t>(options_.flow.ring_depth), bytes};
  };
  const auto fails = [&](std::size_t component, std::size_t port, const Error& why) {
    return fail(why.code, "{}: {}", dag.name_of({component, port}), why.message);
  };
  // All are counted before the first is made: what does not fit as a whole takes nothing.
  std::vector<std::shared_ptr<void>> holds;
  for (const auto& [component, port] : places_.in_rings()) {
    const wire::StageRingShape shape = shape_of(component, port);
    const auto most = static_cast<std::uint64_t>(options_.rings->bounds().function.count());
    const std::uint64_t bytes = shape.valid() ? shape.bytes() : most + 1;  // HostRing refuses a shape that is not
    auto hold = options_.rings->take(options_.name, Bytes(static_cast<std::int64_t>(bytes)));
    if (!hold) return fails(component, port, hold.error());
    holds.push_back(*std::move(hold));
  }
  std::size_t next = 0;
  for (const auto& [component, port] : places_.in_rings()) {
    auto ring = HostRing::make(shape_of(component, port), std::move(holds[next++]));
    if (!ring) return fails(component, port, ring.error());
    Stage& stage = stages_[places_.stage_of(component)];
    stage.view.ring_bytes += (*ring)->bytes();
    stage.rings[{component, port}] = *std::move(ring);
  }
  return {};
}

// ---- processes

// All that a process will write, or read of others, is pinned before the first request.
void PipelineInstance::start_process(std::size_t s) {
  Stage& stage = stages_[s];
  ServerProcess::Options process = options_.process;
  process.environment = options_.stages[s].environment;
  const auto rings_of = [this](const std::vector<std::size_t>& components) {
    StageWorkers::Rings rings;
    for (const auto& tensor : places_.rings_of(components)) {
      rings.push_back(stages_[places_.stage_of(tensor.first)].rings.at(tensor));
    }
    return rings;
  };
  stage.process = std::make_unique<StageWorkers>(
      io_,
      StageWorkers::Options{.server = {.process = std::move(process),
                                       .tenant = options_.tenant,
                                       .program = options_.program,
                                       .components = options_.stages[s].components,
                                       .rings = {}},
                            .rings = rings_of,
                            .launch = options_.launch_program},
      StageWorker::Events{.ready = [this, s] { on_ready(s); },
                          .lost = [this, s](const std::string& why) { on_lost(s, why); },
                          .done = [this, s](wire::CallDone done) { on_done(s, std::move(done)); }});
  stage.timer->expires_after(options_.start_limit);
  stage.timer->async_wait(
      [this, s, started = stage.process.get(), life = life_.watch()](boost::system::error_code error) {
        if (error || life.ended() || stages_[s].process.get() != started || started->is_ready()) return;
        started->end(fmt::format("it was not ready {:.3g} s after its start", to_seconds(options_.start_limit)));
      });
}

void PipelineInstance::on_ready(std::size_t s) {
  Stage& stage = stages_[s];
  stage.timer->cancel();
  stage.ready_since = monotonic_now();
  stage.requests_before = stage.view.requests;
  stage.warm.clear();
  stage.view.is_ready = true;
  RequestFlow::Actions actions;
  flow_.ready(monotonic_now(), s, 0, actions);
  carry_out(std::move(actions));
  const bool all = std::all_of(stages_.begin(), stages_.end(), [](const Stage& one) { return one.view.is_ready; });
  if (all && !std::exchange(was_ready_, true)) events_.ready();
}

void PipelineInstance::on_lost(std::size_t s, const std::string& why) {
  Stage& stage = stages_[s];
  const bool served = stage.view.requests > stage.requests_before || monotonic_now() - stage.ready_since >= kLongEnough;
  const bool lasted = stage.view.is_ready && served;
  stage.view.is_ready = false;
  ++stage.view.restarts;
  stage.timer->cancel();
  stage.process.reset();
  const auto is_on_gpu = [&] {
    return options_.program->dag.components[stage.run->order.components[stage.run->next]].needs_gpu;
  };
  if (stage.run && stage.run->call != 0 && is_on_gpu()) {
    const Duration had = monotonic_now() - stage.run->sent;
    stage.view.gpu_time += had;
    charge(*stage.run, had);
  }
  stage.run.reset();
  const std::string where = stage.view.gpu ? fmt::format("GPU {}", stage.view.gpu.value()) : "the host";
  const std::string what =
      fmt::format("the server of {} on {} has ended: {}", fmt::join(stage.view.components, ", "), where, why);
  if (!was_ready_ && !is_abandoned_) {
    if (!std::exchange(is_broken_, true)) events_.broken(what);
    return;
  }
  if (!is_abandoned_) {
    spdlog::warn("pipeline {}: {}", options_.name, what);
    stage.timer->expires_after(lasted ? Duration(0) : stage.wait);
    stage.wait = lasted ? Duration(0) : std::min(kMostWait, std::max(kFirstWait, 2 * stage.wait));
    stage.timer->async_wait([this, s, life = life_.watch()](boost::system::error_code error) {
      if (!error && !life.ended() && !is_abandoned_) start_process(s);
    });
  }
  RequestFlow::Actions actions;
  flow_.lost(monotonic_now(), s, 0, what, actions);
  carry_out(std::move(actions));
}

bool PipelineInstance::has_processes() const {
  return std::any_of(stages_.begin(), stages_.end(), [](const Stage& stage) { return stage.process != nullptr; });
}

// ---- requests

void PipelineInstance::offer(Request request) {
  const PipelineRequestId id = request.id;
  const auto deadline = request.deadline;
  Live& live = live_[id];
  live.request = std::move(request);
  const FlowProgress progress = live.request.progress ? live.request.progress->flow : FlowProgress();
  live.ran = progress.ran;
  live.ran.resize(options_.program->dag.components.size());
  RequestFlow::Actions actions;
  flow_.offer(monotonic_now(), id, deadline, actions, progress);
  carry_out(std::move(actions));
}

void PipelineInstance::cancel(PipelineRequestId request) {
  RequestFlow::Actions actions;
  flow_.cancel(monotonic_now(), request, actions);
  carry_out(std::move(actions));
}

void PipelineInstance::abandon(const std::string& why) {
  RequestFlow::Actions actions;
  is_abandoned_ = true;
  for (auto& [id, live] : live_) {
    auto progress = std::make_shared<PipelineProgress>();  // shared: the reply and the next instance's request
    progress->flow = flow_.progress(id);
    if (live.request.progress) progress->tensors = live.request.progress->tensors;
    for (std::size_t s = 0; s < progress->flow.slots.size(); ++s) {
      if (!progress->flow.slots[s]) continue;
      const auto slot = static_cast<std::uint32_t>(*progress->flow.slots[s]);
      for (const auto& [output, ring] : stages_[s].rings) {
        if (progress->flow.ran[output.first].value_or(false))
          progress->tensors.try_emplace(output, PipelineProgress::Tensor{ring, slot});
      }
    }
    live.progress = std::move(progress);
  }
  flow_.abandon(monotonic_now(), why, actions);
  carry_out(std::move(actions));
  for (Stage& stage : stages_) {
    stage.timer->cancel();
    if (stage.process) stage.process->end(why);
  }
}

void PipelineInstance::carry_out(RequestFlow::Actions actions) {
  for (const RequestFlow::Action& action : actions) std::visit([this](const auto& one) { act(one); }, action);
  begin_runs();
  timer_.arm(flow_.next_wakeup(), [this] {
    RequestFlow::Actions late;
    flow_.wake(monotonic_now(), late);
    carry_out(std::move(late));
  });
}

// A stage that has nothing to do reports at once, and what follows is begun by the one who began first.
void PipelineInstance::begin_runs() {
  if (std::exchange(ordered_.is_beginning, true)) return;
  while (!ordered_.runs.empty()) {
    const auto [stage, tried] = ordered_.runs.front();
    ordered_.runs.pop_front();
    if (stages_[stage].run && stages_[stage].run->order.tried == tried) step(stage);
  }
  ordered_.is_beginning = false;
}

void PipelineInstance::act(const RequestFlow::Run& order) {
  Stage& stage = stages_[order.stage];
  FL_CHECK(!stage.run && stage.process, "stage {} cannot run a request", order.stage);
  stage.run = Run{.order = order};
  ordered_.runs.emplace_back(order.stage, order.tried);
}

void PipelineInstance::act(const RequestFlow::Kill& kill) {
  spdlog::warn("pipeline {}: the server of {} takes longer than it may and is ended", options_.name,
               fmt::join(stages_[kill.stage].view.components, ", "));
  if (stages_[kill.stage].process) {
    stages_[kill.stage].process->end(
        fmt::format("a request took it longer than {:.3g} s", to_seconds(options_.flow.stage_limit)));
  }
}

void PipelineInstance::act(const RequestFlow::Answer& answer) {
  auto live = live_.extract(answer.request);
  if (live.empty()) return;
  for (Stage& stage : stages_) {
    if (stage.run && stage.run->order.request == answer.request) stage.run->over = monotonic_now();
  }
  Reply reply{.id = answer.request,
              .end = answer.end,
              .why = answer.why,
              .outputs = {},
              .gpu_time = live.mapped().gpu_time,
              .phases = live.mapped().phases,
              .progress = answer.end == FlowEnd::kReturned ? live.mapped().progress : nullptr};
  const Dag& dag = options_.program->dag;
  for (std::size_t o = 0; answer.end == FlowEnd::kAnswered && o < dag.outputs.size(); ++o) {
    const TensorSource& from = dag.outputs[o].from;
    std::optional<Output>& output = reply.outputs.emplace_back();
    if (!from.component) {
      output = {.ring = {}, .slot = 0, .inputs = live.mapped().request.inputs, .port = from.port};
    } else if (answer.outputs[o].slot == RequestFlow::kKept) {
      const auto& kept = live.mapped().request.progress->tensors.at({*from.component, from.port});
      output = {.ring = kept.ring, .slot = kept.slot, .inputs = {}, .port = 0};
    } else if (answer.outputs[o].slot != RequestFlow::kAbsent) {
      output = {.ring = stages_[answer.outputs[o].stage].rings.at({*from.component, from.port}),
                .slot = static_cast<std::uint32_t>(answer.outputs[o].slot),
                .inputs = {},
                .port = 0};
    }
  }
  boost::asio::post(io_,
                    life_.guarded([this, reply = std::move(reply)]() mutable { events_.replied(std::move(reply)); }));
}

void PipelineInstance::taken(PipelineRequestId request) {
  RequestFlow::Actions actions;
  flow_.taken(monotonic_now(), request, actions);
  carry_out(std::move(actions));
  // Rings of other instances that no request needs any more. One that ended may have left a run that still reads them.
  std::set<std::uint64_t> wanted;
  for (const auto& [id, live] : live_) {
    if (!live.request.progress) continue;
    for (const auto& [output, tensor] : live.request.progress->tensors) wanted.insert(tensor.ring->number());
  }
  for (Stage& stage : stages_) {
    if (stage.process && !(stage.run && stage.run->over)) stage.process->keep_others(wanted);
  }
}

// ---- a stage's run

bool PipelineInstance::scalar(const Run& run, const TensorSource& source) const {
  if (const auto live = live_.find(run.order.request); live != live_.end() && live->second.request.progress) {
    const auto& known = live->second.request.progress->flow.scalars;
    const auto value = known.find({*source.component, source.port});
    if (value != known.end()) return value->second;
  }
  const std::size_t stage = places_.stage_of(*source.component);
  const HostRing& ring = *stages_[stage].rings.at({*source.component, source.port});
  const ElementType type = options_.program->dag.port(source).type;
  return is_set(ring.tensor(static_cast<std::uint32_t>(slot_of(run.order, stage))), type);
}

bool PipelineInstance::runs(const Run& run, const Live& live, std::size_t component) const {
  const Component& one = options_.program->dag.components[component];
  const auto ran = [&](const TensorSource& source) {
    return !source.component || live.ran[*source.component].value_or(false);
  };
  if (one.when && (!ran(one.when->value) || scalar(run, one.when->value) != one.when->is)) return false;
  return std::all_of(one.inputs.begin(), one.inputs.end(), [&](const ComponentInput& input) {
    return std::any_of(input.sources.begin(), input.sources.end(), ran);
  });
}

void PipelineInstance::step(std::size_t s) {
  Run& run = *stages_[s].run;
  const auto live = live_.find(run.order.request);
  if (live == live_.end()) return end_run(s, "nobody waits for its request any more");
  for (; run.next < run.order.components.size(); ++run.next) {
    const std::size_t component = run.order.components[run.next];
    live->second.ran[component] = false;
    if (runs(run, live->second, component)) return send(s, component);
  }
  end_run(s, "");
}

void PipelineInstance::bind_input(wire::RunCall& call, const Run& run, const Live& live, std::size_t s,
                                  std::size_t component, std::size_t input) {
  const ComponentInput& port = options_.program->dag.components[component].inputs[input];
  const std::uint32_t buffer = options_.program->tasks[component].inputs[input];
  for (const TensorSource& source : port.sources) {
    if (!source.component) {
      call.inputs.push_back({.buffer = buffer, .object = 0, .bytes = (*live.request.inputs)[source.port]});
      return;
    }
    if (!live.ran[*source.component].value_or(false)) continue;
    const std::size_t from = places_.stage_of(*source.component);
    const bool is_in_ring = places_.leaves_device(*source.component, component);
    const PipelineProgress* const before = live.request.progress.get();
    const bool is_kept = before != nullptr && before->flow.ran[*source.component].has_value();
    if (is_kept) {
      const PipelineProgress::Tensor& tensor = before->tensors.at({*source.component, source.port});
      stages_[s].process->open_other(component, *tensor.ring);
      call.ring_inputs.push_back(tensor.ring->read(tensor.slot, buffer));
    } else if (!is_in_ring) {
      call.inputs.push_back(
          {.buffer = buffer, .object = run.objects.at({*source.component, source.port}), .bytes = {}});
    } else {
      const HostRing& ring = *stages_[from].rings.at({*source.component, source.port});
      call.ring_inputs.push_back(ring.read(static_cast<std::uint32_t>(slot_of(run.order, from)), buffer));
    }
    return;
  }
}

void PipelineInstance::send(std::size_t s, std::size_t component) {
  Stage& stage = stages_[s];
  Run& run = *stage.run;
  wire::RunCall call{.call = ++last_number_};
  const Live& live = live_.at(run.order.request);
  for (std::size_t i = 0; i < options_.program->dag.components[component].inputs.size(); ++i) {
    bind_input(call, run, live, s, component, i);
  }
  const std::vector<std::uint32_t>& buffers = options_.program->tasks[component].outputs;
  for (std::uint32_t port = 0; port < buffers.size(); ++port) {
    const auto ring = stage.rings.find({component, port});
    wire::BoundObject output{.buffer = buffers[port], .object = 0, .bytes = {}};
    // One that nobody reads is an object too: what is answered inline would be copied. What a program makes is in a ring.
    if (ring == stage.rings.end() || is_read(options_.program->dag, options_.stages[s].components, {component, port})) {
      output.object = run.objects[{component, port}] = ++last_number_;
    }
    call.outputs.push_back(std::move(output));
    if (ring != stage.rings.end()) {
      call.ring_outputs.push_back(
          ring->second->write(static_cast<std::uint32_t>(run.order.writes.slot), buffers[port]));
    }
  }
  run.call = call.call;
  run.sent = monotonic_now();
  stage.process->run(component, std::move(call));
}

void PipelineInstance::on_done(std::size_t s, wire::CallDone done) {
  Stage& stage = stages_[s];
  if (!stage.run || stage.run->call != done.call) return;
  Run& run = *stage.run;
  run.call = 0;
  stage.view.gpu_time += Duration(done.gpu_ns);
  charge(run, Duration(done.gpu_ns));
  const std::size_t component = run.order.components[run.next];
  const auto live = live_.find(run.order.request);
  if (live != live_.end()) add(live->second.phases, done.phases);
  if (done.outcome != wire::CallDone::Outcome::kDone) {
    return end_run(s, fmt::format("component {}: {}", options_.program->dag.components[component].name, done.error));
  }
  if (!stage.warm.insert(component).second && events_.ran) events_.ran(s, component, done.phases.kernel_run);
  // A program has no stream that would raise the words of what it wrote.
  for (const auto& [output, ring] : stage.rings) {
    const bool is_its = output.first == component && !options_.program->dag.components[component].needs_gpu;
    if (is_its) ring->let_go(static_cast<std::uint32_t>(run.order.writes.slot));
  }
  run.ran.push_back(component);
  if (live != live_.end()) live->second.ran[component] = true;
  ++run.next;
  step(s);
}

// What came after the end of its request is its function's.
void PipelineInstance::charge(Run& run, Duration gpu_time) {
  if (const auto live = live_.find(run.order.request); live != live_.end()) {
    live->second.gpu_time += gpu_time;
  } else {
    events_.used(std::min(gpu_time, run.over ? monotonic_now() - *run.over : gpu_time));
  }
}

// What it left on the device goes with it.
void PipelineInstance::end_run(std::size_t s, const std::string& error) {
  Stage& stage = stages_[s];
  const Run run = *std::exchange(stage.run, std::nullopt);
  for (const auto& [output, object] : run.objects) stage.process->drop(object);
  RequestFlow::Actions actions;
  if (error.empty()) {
    ++stage.view.requests;
    StageReport report{.ran = run.ran, .scalars = {}};
    for (const std::size_t component : run.ran) {
      for (std::size_t port = 0; port < options_.program->tasks[component].outputs.size(); ++port) {
        if (!decides(options_.program->dag, component, port)) continue;
        report.scalars.emplace_back(TensorSource{component, port}, scalar(run, {component, port}));
      }
    }
    flow_.done(monotonic_now(), s, 0, run.order.tried, report, actions);
  } else {
    flow_.failed(monotonic_now(), s, 0, run.order.tried, error, actions);
  }
  carry_out(std::move(actions));
}

std::vector<PipelineInstance::StageView> PipelineInstance::stages() const {
  std::vector<StageView> views;
  for (std::size_t s = 0; s < stages_.size(); ++s) {
    views.push_back(stages_[s].view);
    views.back().pid = stages_[s].process ? stages_[s].process->pid() : 0;
    views.back().ring_used = flow_.slots_used(s);
  }
  return views;
}

}  // namespace fairlead

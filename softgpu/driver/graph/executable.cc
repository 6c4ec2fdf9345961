#include "softgpu/driver/graph/executable.h"

#include <algorithm>

#include "softgpu/device/time/busy_meter.h"
#include "softgpu/driver/code/module.h"
#include "softgpu/driver/memory/graph_memory.h"
#include "softgpu/mutex.h"

namespace softgpu::graph {
namespace {

// The context in which a step runs, or null when it is none's.
CUcontext context_of(const Payload& payload) {
  if (const auto* kernel = std::get_if<KernelLaunch>(&payload)) return kernel->function->module->context;
  if (const auto* copy = std::get_if<Copy>(&payload)) return copy->context;
  if (const auto* fill = std::get_if<Fill>(&payload)) return fill->ctx;
  if (const auto* batch = std::get_if<MemoryOperations>(&payload)) return batch->context;
  return nullptr;
}

Plan plan_of(const std::vector<Step>& steps) {
  std::vector<PlanStep> plan;
  plan.reserve(steps.size());
  for (const Step& step : steps) {
    const bool records = std::holds_alternative<EventRecord>(step.payload);
    plan.push_back({step.after, records, std::holds_alternative<EventWait>(step.payload)});
  }
  return make_plan(plan);
}

bool can_be_disabled(CUgraphNodeType type) {
  return type == CU_GRAPH_NODE_TYPE_KERNEL || type == CU_GRAPH_NODE_TYPE_MEMCPY || type == CU_GRAPH_NODE_TYPE_MEMSET;
}

}  // namespace

CUresult Executable::make(CUgraph graph, std::uint64_t flags, std::unique_ptr<Executable>& made,
                          InstantiateError& error) {
  std::vector<Step> steps;
  error = {CUDA_GRAPH_INSTANTIATE_ERROR, nullptr};
  if (graph->capturing) return CUDA_ERROR_ILLEGAL_STATE;
  if (graph->owns_memory() && graph->executables->load() != 0) return CUDA_ERROR_INVALID_VALUE;
  if (!flatten(graph, steps, error.node)) {
    error.result = CUDA_GRAPH_INSTANTIATE_INVALID_STRUCTURE;
    return CUDA_ERROR_INVALID_VALUE;
  }
  SOFTGPU_TRY(prepare_steps(steps, error.node));
  auto program = std::make_shared<Program>();
  program->plan = plan_of(steps);
  program->steps = std::move(steps);
  program->references = graph->references;
  made.reset(new Executable(flags, graph->executables));
  made->count_->fetch_add(1);
  const LockGuard unshared(made->mutex_);  // nobody else knows it
  for (std::size_t i = 0; i < program->steps.size(); ++i) {
    if (program->steps[i].key != 0) made->step_of_[program->steps[i].key] = i;
  }
  made->program_ = std::move(program);
  made->note_contexts();
  error = {};
  return CUDA_SUCCESS;
}

Executable::~Executable() {
  count_->fetch_sub(1);
  close_lanes();
}

// A context that has ended has closed them itself.
void Executable::close_lanes() {
  for (const auto& lane : lanes_) {
    const bool alive = lanes_of_.context->active() && lanes_of_.context->id() == lanes_of_.id;
    if (alive) lanes_of_.context->streams().close(lane);
  }
  lanes_.clear();
}

void Executable::note_contexts() {
  for (const Step& step : program_->steps) {
    CUcontext context = context_of(step.payload);
    const bool known = std::any_of(contexts_.begin(), contexts_.end(),
                                   [&](const UsedContext& used) { return used.context == context; });
    if (context != nullptr && !known) contexts_.push_back({context, context->id()});
  }
}

CUresult Executable::check_contexts() const {
  for (const UsedContext& used : contexts_) {
    if (!used.context->active() || used.context->id() != used.id) return CUDA_ERROR_CONTEXT_IS_DESTROYED;
    SOFTGPU_TRY(used.context->fault());
  }
  return CUDA_SUCCESS;
}

// ---- Launch ----

CUresult Executable::check_memory() const {
  const bool auto_free = (flags_ & CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH) != 0;
  std::vector<const GraphMemory*> own;
  for (const Step& step : program_->steps) {
    if (const auto* allocate = std::get_if<Allocate>(&step.payload)) {
      if (!auto_free && allocate->memory->live()) return CUDA_ERROR_INVALID_VALUE;
      own.push_back(allocate->memory.get());
    } else if (const auto* free = std::get_if<Free>(&step.payload)) {
      const bool allocated_here = std::find(own.begin(), own.end(), free->memory.get()) != own.end();
      if (!allocated_here && !free->memory->live()) return CUDA_ERROR_INVALID_VALUE;
    }
  }
  return CUDA_SUCCESS;
}

void Executable::change_memory() const {
  for (const Step& step : program_->steps) {
    if (const auto* allocate = std::get_if<Allocate>(&step.payload)) {
      allocate->memory->end_life();  // with automatic freeing it may be live still
      allocate->memory->begin_life();
    } else if (const auto* free = std::get_if<Free>(&step.payload)) {
      free->memory->end_life();
    }
  }
}

void Executable::prepare_lanes(CUctx_st& context) {
  const std::size_t wanted = program_->plan.lanes - 1;
  if (lanes_of_.context != &context || lanes_of_.id != context.id()) {
    close_lanes();
    lanes_of_ = {&context, context.id()};
  }
  while (lanes_.size() < wanted) lanes_.push_back(context.streams().make(Stream::Kind::kNonBlocking, 0));
}

std::vector<Point> Executable::points_before(const Segment& segment, const std::vector<Point>& ends) const {
  std::vector<Point> after;
  for (const std::size_t earlier : segment.after) after.push_back(ends[earlier]);
  for (const std::size_t index : segment.steps) {
    const auto* wait = std::get_if<EventWait>(&program_->steps[index].payload);
    if (wait == nullptr) continue;
    const auto record = wait->event->last_record();
    if (record != nullptr && !record->point.reached()) after.push_back(record->point);
  }
  return after;
}

Executable::Records Executable::make_records(const Segment& segment) const {
  Records records;
  for (const std::size_t index : segment.steps) {
    const auto* record = std::get_if<EventRecord>(&program_->steps[index].payload);
    if (record != nullptr) records.emplace_back(record->event, std::make_shared<CUevent_st::Record>());
  }
  return records;
}

void Executable::run_segment(Program& program, std::size_t index, CUctx_st& context) {
  for (const std::size_t number : program.plan.segments[index].steps) {
    if (context.fault() != CUDA_SUCCESS) return;
    const Step& step = program.steps[number];
    if (step.enabled && step.run) step.run();
  }
}

Point Executable::submit_segment(const StreamUse& use, std::size_t index, std::vector<Point> after) {
  const Segment& segment = program_->plan.segments[index];
  Stream& stream = segment.lane == 0 ? *use.stream : *lanes_[segment.lane - 1];
  CUcontext context = use.context;
  const Records records = make_records(segment);
  std::vector<std::weak_ptr<CUevent_st::Record>> stamps;  // weak: a record's point holds the stream, which holds this
  for (const auto& [event, record] : records) stamps.emplace_back(record);
  Point end = context->streams().submit(
      stream,
      [program = program_, index, context, stamps = std::move(stamps)] {
        run_segment(*program, index, *context);
        for (const auto& stamp : stamps) {
          if (const auto record = stamp.lock()) record->time_ns = monotonic_ns();
        }
      },
      std::move(after));
  for (const auto& [event, record] : records) {
    record->point = end;
    const LockGuard guard(event->mutex);
    event->record = record;
    event->captured.reset();
  }
  return end;
}

CUresult Executable::launch(const StreamUse& use) {
  const LockGuard guard(mutex_);
  SOFTGPU_TRY(check_contexts());
  SOFTGPU_TRY(check_memory());
  change_memory();
  const Plan& plan = program_->plan;
  CUctx_st& context = *use.context;
  const bool parallel = plan.lanes > 1;
  if (parallel) prepare_lanes(context);
  if (parallel || plan.segments.empty()) last_end_ = context.streams().submit(*use.stream, [] {}, {last_end_});
  const Point begin = last_end_;  // of this launch, else the end of the last one
  std::vector<Point> ends(plan.segments.size());
  std::vector<Point> lane_ends(plan.lanes);
  for (std::size_t i = 0; i < plan.segments.size(); ++i) {
    const std::size_t lane = plan.segments[i].lane;
    std::vector<Point> after = points_before(plan.segments[i], ends);
    const bool first = lane_ends[lane].stream == nullptr;
    if (first && !begin.reached()) after.push_back(begin);
    ends[i] = submit_segment(use, i, std::move(after));
    lane_ends[lane] = ends[i];
  }
  if (parallel)
    last_end_ = context.streams().submit(
        *use.stream, [] {}, lane_ends);
  if (!parallel && !plan.segments.empty()) last_end_ = ends.back();
  return CUDA_SUCCESS;
}

// ---- Updates ----

// The program, to be changed. Nobody reads it when no launch is in flight: an operation lets go of what it held before
// it counts as completed.
Executable::Program& Executable::writable() {
  if (!last_end_.reached()) program_ = std::make_shared<Program>(*program_);
  return *program_;
}

Step* Executable::find(CUgraphNode node) {
  if (!Nodes::valid(node)) return nullptr;
  const auto found = step_of_.find(node->key);
  return found != step_of_.end() ? &program_->steps[found->second] : nullptr;
}

// Gives the steps from `first` on the parameters of `steps`, all or none.
CUresult Executable::replace(std::size_t first, std::vector<Step> steps, CUgraphExecUpdateResultInfo& info) {
  const auto begin = program_->steps.begin() + static_cast<std::ptrdiff_t>(first);
  const std::vector<Step> old(begin, begin + static_cast<std::ptrdiff_t>(steps.size()));
  info = compare_steps(old, steps, first);
  if (info.result != CU_GRAPH_EXEC_UPDATE_SUCCESS) return CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE;
  if (const CUresult error = prepare_steps(steps, info.errorNode); error != CUDA_SUCCESS) {
    info.result = CU_GRAPH_EXEC_UPDATE_ERROR;
    return error;
  }
  Program& program = writable();
  for (std::size_t i = 0; i < steps.size(); ++i) {
    program.steps[first + i].payload = std::move(steps[i].payload);
    program.steps[first + i].run = std::move(steps[i].run);
  }
  return CUDA_SUCCESS;
}

CUresult Executable::update(CUgraph graph, CUgraphExecUpdateResultInfo& info) {
  std::vector<Step> steps;
  info = {CU_GRAPH_EXEC_UPDATE_ERROR, nullptr, nullptr};
  if (!flatten(graph, steps, info.errorNode)) return CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE;
  const LockGuard guard(mutex_);
  if (steps.size() != program_->steps.size()) {
    info = {CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED, nullptr, nullptr};
    return CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE;
  }
  return replace(0, std::move(steps), info);
}

CUresult Executable::set_payload(CUgraphNode node, Payload payload) {
  std::function<void()> run;
  const LockGuard guard(mutex_);
  const Step* step = find(node);
  if (step == nullptr || compare_payloads(step->payload, payload) != CU_GRAPH_EXEC_UPDATE_SUCCESS) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  SOFTGPU_TRY(prepare(payload, run));
  const auto index = static_cast<std::size_t>(step - program_->steps.data());
  Step& changed = writable().steps[index];
  changed.payload = std::move(payload);
  changed.run = std::move(run);
  return CUDA_SUCCESS;
}

CUresult Executable::set_child(CUgraphNode node, CUgraph child) {
  std::vector<Step> steps;
  CUgraphExecUpdateResultInfo info = {};
  CUgraphNode in_cycle = nullptr;
  if (!flatten(child, steps, in_cycle)) return CUDA_ERROR_INVALID_VALUE;
  const LockGuard guard(mutex_);
  const Step* entry = find(node);
  if (entry == nullptr || entry->type != CU_GRAPH_NODE_TYPE_GRAPH) return CUDA_ERROR_INVALID_VALUE;
  const auto first = static_cast<std::size_t>(entry - program_->steps.data()) + 1;
  const auto& all = program_->steps;
  const auto exit = std::find_if(all.begin() + static_cast<std::ptrdiff_t>(first), all.end(),
                                 [&](const Step& step) { return step.key == 0 && step.node == node; });
  const auto count = static_cast<std::size_t>(exit - all.begin()) - first;
  if (count != steps.size()) return CUDA_ERROR_INVALID_VALUE;
  for (Step& step : steps) {  // as they are numbered in this graph, where the child's roots wait for its entry
    for (std::size_t& before : step.after) before += first;
    if (step.after.empty()) step.after.push_back(first - 1);
  }
  const CUresult result = replace(first, std::move(steps), info);
  return result == CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE ? CUDA_ERROR_INVALID_VALUE : result;
}

CUresult Executable::set_enabled(CUgraphNode node, bool enabled) {
  const LockGuard guard(mutex_);
  const Step* step = find(node);
  if (step == nullptr || !can_be_disabled(step->type)) return CUDA_ERROR_INVALID_VALUE;
  const auto index = static_cast<std::size_t>(step - program_->steps.data());
  writable().steps[index].enabled = enabled;
  return CUDA_SUCCESS;
}

CUresult Executable::get_enabled(CUgraphNode node, bool& enabled) {
  const LockGuard guard(mutex_);
  const Step* step = find(node);
  if (step == nullptr || !can_be_disabled(step->type)) return CUDA_ERROR_INVALID_VALUE;
  enabled = step->enabled;
  return CUDA_SUCCESS;
}

CUresult Executable::get_payload(CUgraphNode node, Payload& payload) {
  const LockGuard guard(mutex_);
  const Step* step = find(node);
  if (step == nullptr) return CUDA_ERROR_INVALID_VALUE;
  payload = step->payload;
  return CUDA_SUCCESS;
}

CUgraph Executable::as_graph() {
  const LockGuard guard(mutex_);
  return graph_of(program_->steps);
}

}  // namespace softgpu::graph

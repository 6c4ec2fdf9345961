#include "decide/pipeline/request_flow.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/check.h"

namespace fairlead {

std::string_view flow_end_name(FlowEnd end) {
  constexpr std::string_view kNames[] = {"answered", "failed", "late", "cancelled", "returned"};
  return kNames[static_cast<std::size_t>(end)];
}

Result<RequestFlow> RequestFlow::make(Dag dag, std::vector<FlowStage> stages, FlowSettings settings) {
  if (const auto problem = check_dag(dag)) return fail(Errc::kInvalidArgument, "{}", problem->message);
  if (settings.ring_depth == 0) return fail(Errc::kInvalidArgument, "ring_depth is 0, it must be at least 1");
  RequestFlow made(std::move(dag), settings);
  if (Status status = made.add_stages(stages); !status) return fail(status.error());
  return made;
}

Status RequestFlow::add_stages(const std::vector<FlowStage>& stages) {
  constexpr std::size_t kNone = kAbsent;
  stage_of_.assign(dag_.components.size(), kNone);
  const std::vector<std::size_t> order = topological_order(dag_);
  for (std::size_t i = 0; i < stages.size(); ++i) {
    if (stages[i].replicas == 0 || stages[i].components.empty()) {
      return fail(Errc::kInvalidArgument, "stages[{}] has {} replicas and {} components, it needs one of each", i,
                  stages[i].replicas, stages[i].components.size());
    }
    for (const std::size_t one : stages[i].components) {
      if (one >= stage_of_.size() || stage_of_[one] != kNone) {
        return fail(Errc::kInvalidArgument, "stages[{}] has component {}, which does not exist or is in another", i,
                    one);
      }
      stage_of_[one] = i;
    }
    stages_.emplace_back();
    std::copy_if(order.begin(), order.end(), std::back_inserter(stages_.back().components),
                 [&](std::size_t one) { return stage_of_[one] == i; });
    stages_.back().replicas.resize(stages[i].replicas);
    stages_.back().slots.assign(settings_.ring_depth, false);
  }
  const auto missing = std::find(stage_of_.begin(), stage_of_.end(), kNone);
  if (missing != stage_of_.end()) {
    return fail(Errc::kInvalidArgument, "component {} is in no stage",
                dag_.components[static_cast<std::size_t>(missing - stage_of_.begin())].name);
  }
  const auto reads = components_read(dag_);
  for (std::size_t one = 0; one < reads.size(); ++one) {
    for (const std::size_t read : reads[one]) {
      const std::size_t from = stage_of_[read], to = stage_of_[one];
      if (from > to) {
        return fail(Errc::kInvalidArgument, "stages[{}] reads {} of stages[{}]: stages must come in their order", to,
                    dag_.components[read].name, from);
      }
      if (from == to) continue;
      auto& before = stages_[to].reads;
      if (std::find(before.begin(), before.end(), from) == before.end()) before.push_back(from);
      auto& after = stages_[from].read_by;
      if (std::find(after.begin(), after.end(), to) == after.end()) after.push_back(to);
      if (dag_.components[one].when && dag_.components[one].when->value.component == read) {
        stages_[from].decides_outside.push_back(read);
      }
    }
  }
  for (Stage& stage : stages_) std::sort(stage.reads.begin(), stage.reads.end());
  for (const DagOutput& output : dag_.outputs) {
    if (output.from.component) stages_[stage_of_[*output.from.component]].has_output = true;
  }
  return {};
}

bool RequestFlow::has_room() const {
  const auto waiting = std::max_element(stages_.begin(), stages_.end(), [](const Stage& a, const Stage& b) {
    return a.awaited.size() < b.awaited.size();
  });
  // Who waits before the last stages is inside already; at the first one only as many wait as a ring has.
  return stages_.front().awaited.size() < settings_.ring_depth &&
         waiting->awaited.size() < settings_.ring_depth * (stages_.size() + 1);
}

void RequestFlow::offer(Instant now, PipelineRequestId request, std::optional<Instant> deadline, Actions& out,
                        const FlowProgress& progress) {
  FL_CHECK(has_room(), "request {} has no room", request.value());
  FL_CHECK(request > last_, "request {} is not above {}", request.value(), last_.value());
  last_ = request;
  Request& made = requests_[request];
  made.deadline = deadline;
  made.tries_left = settings_.retries - std::min(settings_.retries, progress.tries);
  made.stages.resize(stages_.size());
  made.ran = progress.ran;
  made.ran.resize(dag_.components.size());
  for (const auto& ran : made.ran) made.kept.push_back(ran.has_value());
  made.scalars = progress.scalars;
  for (Stage& stage : stages_) stage.awaited.push_back(request);
  ++unanswered_;
  if (deadline && *deadline <= now) answer(request, FlowEnd::kLate, "its deadline had passed", out);
  pump(now, out);
}

FlowProgress RequestFlow::progress(PipelineRequestId id) const {
  const auto found = requests_.find(id);
  if (found == requests_.end() || found->second.is_answered) return {};
  const Request& request = found->second;
  FlowProgress made;
  made.tries = settings_.retries - request.tries_left + (request.runs() ? 1 : 0);
  made.ran.resize(dag_.components.size());
  made.slots.resize(stages_.size());
  for (std::size_t one = 0; one < made.ran.size(); ++one) {
    const Progress& at = request.stages[stage_of_[one]];
    if (at.at != At::kEnded && !request.kept[one]) continue;
    made.ran[one] = request.ran[one];
    if (at.at == At::kEnded) made.slots[stage_of_[one]] = at.slot;
  }
  for (const auto& [source, value] : request.scalars) {
    if (made.ran[source.first]) made.scalars[source] = value;
  }
  return made;
}

// `ran`: of each component it reads, whether it ran, or may run where its own stage decides that.
bool RequestFlow::component_runs(const Request& request, std::size_t component,
                                 const std::vector<std::optional<bool>>& ran) const {
  const Component& one = dag_.components[component];
  const auto may = [&](const TensorSource& source) {
    return !source.component || ran[*source.component].value_or(false);
  };
  if (one.when) {
    if (!may(one.when->value)) return false;
    const auto scalar = request.scalars.find({*one.when->value.component, one.when->value.port});
    if (scalar != request.scalars.end() && scalar->second != one.when->is) return false;
  }
  return std::all_of(one.inputs.begin(), one.inputs.end(), [&](const ComponentInput& input) {
    return std::any_of(input.sources.begin(), input.sources.end(), may);
  });
}

// Each once, in their order: a component may read 16 others that read 16 others.
std::vector<std::size_t> RequestFlow::components_of(const Request& request, std::size_t stage) const {
  std::vector<std::optional<bool>> ran = request.ran;
  std::vector<std::size_t> run;
  for (const std::size_t one : stages_[stage].components) {
    if (request.kept[one]) continue;
    ran[one] = component_runs(request, one, ran);
    if (*ran[one]) run.push_back(one);
  }
  return run;
}

bool RequestFlow::Request::has_ended(const std::vector<std::size_t>& all) const {
  return std::all_of(all.begin(), all.end(), [&](std::size_t stage) { return stages[stage].at == At::kEnded; });
}

bool RequestFlow::Request::runs() const {
  return std::any_of(stages.begin(), stages.end(), [](const Progress& one) { return one.at == At::kRuns; });
}

void RequestFlow::pump(Instant now, Actions& out) {
  for (bool changed = true; changed;) {
    changed = false;
    for (std::size_t stage = 0; stage < stages_.size(); ++stage) {
      while (step(now, stage, out)) changed = true;
    }
  }
}

RequestFlow::Replica* RequestFlow::Stage::free_replica() {
  const auto found =
      std::find_if(replicas.begin(), replicas.end(), [](const Replica& one) { return one.is_there && !one.runs; });
  return found == replicas.end() ? nullptr : &*found;
}

// Who runs once more comes first. Of the others the oldest that has not been here: passes, starts, or everybody waits behind it.
bool RequestFlow::step(Instant now, std::size_t stage, Actions& out) {
  Stage& at = stages_[stage];
  Replica* replica = at.free_replica();
  if (replica != nullptr && !at.again.empty()) {
    const PipelineRequestId id = at.again.front();
    at.again.pop_front();
    run(now, id, stage, *replica, out);
    return true;
  }
  if (at.awaited.empty()) return false;
  const PipelineRequestId id = at.awaited.front();
  Request& request = requests_.at(id);
  if (!request.has_ended(at.reads)) return false;
  if (components_of(request, stage).empty()) {
    at.awaited.pop_front();
    for (const std::size_t one : at.components) {
      if (!request.kept[one]) request.ran[one] = false;
    }
    end_stage(now, id, stage, out);
    return true;
  }
  const auto slot = std::find(at.slots.begin(), at.slots.end(), false);
  if (replica == nullptr || slot == at.slots.end()) return false;
  at.awaited.pop_front();
  *slot = true;
  request.stages[stage].slot = static_cast<std::size_t>(slot - at.slots.begin());
  run(now, id, stage, *replica, out);
  return true;
}

void RequestFlow::run(Instant now, PipelineRequestId id, std::size_t stage, Replica& replica, Actions& out) {
  Request& request = requests_.at(id);
  request.stages[stage].at = At::kRuns;
  replica.runs = id;
  replica.tried = ++last_try_;
  replica.since = now;
  replica.is_killed = false;
  Run action{.request = id,
             .stage = stage,
             .replica = static_cast<std::size_t>(&replica - stages_[stage].replicas.data()),
             .tried = last_try_,
             .components = components_of(request, stage),
             .reads = {},
             .writes = {stage, *request.stages[stage].slot}};
  for (const std::size_t read : stages_[stage].reads) {
    if (request.stages[read].slot) action.reads.push_back({read, *request.stages[read].slot});
  }
  out.emplace_back(std::move(action));
}

void RequestFlow::end_stage(Instant, PipelineRequestId id, std::size_t stage, Actions& out) {
  Request& request = requests_.at(id);
  request.stages[stage].at = At::kEnded;
  const bool all = std::all_of(request.stages.begin(), request.stages.end(),
                               [](const Progress& one) { return one.at == At::kEnded; });
  if (all && !request.is_answered) {
    answer(id, FlowEnd::kAnswered, "", out);
  } else {
    release(id);
  }
}

// What is wrong with the report, or "".
std::string RequestFlow::note(Request& request, std::size_t stage, const StageReport& report) {
  const Stage& at = stages_[stage];
  const auto ran = [&](std::size_t one) {
    return std::find(report.ran.begin(), report.ran.end(), one) != report.ran.end();
  };
  for (const std::size_t one : report.ran) {
    if (one >= stage_of_.size() || stage_of_[one] != stage) {
      return fmt::format("stage {} says that component {} ran, which is not in it", stage, one);
    }
    if (request.kept[one]) return fmt::format("stage {} says that component {} ran, which had run before", stage, one);
  }
  for (const auto& [source, value] : report.scalars) {
    if (!source.component || !ran(*source.component)) {
      return fmt::format("stage {} gives a scalar of a component that did not run there", stage);
    }
    request.scalars[{*source.component, source.port}] = value;
  }
  // With the scalars known, what may run is what did, component by component.
  for (const std::size_t one : at.components) {
    if (request.kept[one]) continue;
    if (ran(one) && !component_runs(request, one, request.ran)) {
      return fmt::format("stage {} says that {} ran, whose condition does not hold or whose input is not there", stage,
                         dag_.components[one].name);
    }
    const auto& when = dag_.components[one].when;
    const bool decided = !when || request.scalars.contains({*when->value.component, when->value.port});
    if (!ran(one) && decided && component_runs(request, one, request.ran)) {
      return fmt::format("stage {} did not run {}, though its inputs are there", stage, dag_.components[one].name);
    }
    request.ran[one] = ran(one);
  }
  for (const Component& other : dag_.components) {
    if (!other.when) continue;
    const std::size_t decides = *other.when->value.component;
    const bool needed =
        std::find(at.decides_outside.begin(), at.decides_outside.end(), decides) != at.decides_outside.end();
    if (needed && ran(decides) && !request.scalars.contains({decides, other.when->value.port})) {
      return fmt::format("stage {} does not say what {} is, on which {} depends", stage,
                         dag_.name_of(other.when->value), other.name);
    }
  }
  return "";
}

void RequestFlow::done(Instant now, std::size_t stage, std::size_t replica, Try tried, const StageReport& report,
                       Actions& out) {
  Replica& one = stages_[stage].replicas[replica];
  if (!one.runs || one.tried != tried) return;
  const PipelineRequestId id = *std::exchange(one.runs, std::nullopt);
  Request& request = requests_.at(id);
  if (request.is_answered) {
    request.stages[stage].at = At::kEnded;
    release(id);
  } else if (const std::string wrong = note(request, stage, report); !wrong.empty()) {
    request.stages[stage].at = At::kEnded;
    answer(id, FlowEnd::kFailed, wrong, out);
  } else {
    end_stage(now, id, stage, out);
  }
  pump(now, out);
}

void RequestFlow::failed(Instant now, std::size_t stage, std::size_t replica, Try tried, const std::string& why,
                         Actions& out) {
  Replica& one = stages_[stage].replicas[replica];
  if (!one.runs || one.tried != tried) return;
  try_again(now, *std::exchange(one.runs, std::nullopt), stage, why, out);
  pump(now, out);
}

void RequestFlow::lost(Instant now, std::size_t stage, std::size_t replica, const std::string& why, Actions& out) {
  Replica& one = stages_[stage].replicas[replica];
  one.is_there = one.is_killed = false;
  if (!one.runs) return;
  try_again(now, *std::exchange(one.runs, std::nullopt), stage, why, out);
  pump(now, out);
}

void RequestFlow::ready(Instant now, std::size_t stage, std::size_t replica, Actions& out) {
  Replica& one = stages_[stage].replicas[replica];
  if (one.is_there) return;
  one.is_there = true;
  pump(now, out);
}

void RequestFlow::try_again(Instant, PipelineRequestId id, std::size_t stage, const std::string& why, Actions& out) {
  Request& request = requests_.at(id);
  if (request.is_answered) {
    request.stages[stage].at = At::kEnded;
    release(id);
  } else if (request.tries_left == 0) {
    request.stages[stage].at = At::kEnded;
    answer(id, FlowEnd::kFailed, fmt::format("stage {} failed after {} retries: {}", stage, settings_.retries, why),
           out);
  } else {
    --request.tries_left;
    request.failed = why;
    request.stages[stage].at = At::kWaits;
    stages_[stage].again.push_back(id);
  }
}

void RequestFlow::answer(PipelineRequestId id, FlowEnd end, std::string why, Actions& out) {
  Request& request = requests_.at(id);
  request.is_answered = true;
  --unanswered_;
  Answer action{.request = id, .end = end, .why = std::move(why), .outputs = {}};
  if (end == FlowEnd::kAnswered) {
    for (const DagOutput& output : dag_.outputs) {
      const bool of_component = output.from.component.has_value();
      const std::size_t stage = of_component ? stage_of_[*output.from.component] : kAbsent;
      const bool is_there = of_component && request.ran[*output.from.component].value_or(false);
      const bool is_kept = is_there && request.kept[*output.from.component];
      action.outputs.push_back({stage, is_kept ? kKept : is_there ? *request.stages[stage].slot : kAbsent});
    }
    request.is_taken = std::all_of(action.outputs.begin(), action.outputs.end(),
                                   [](const RingSlot& one) { return one.slot == kAbsent; });
  } else {
    request.is_taken = true;  // nobody copies anything
    for (std::size_t i = 0; i < stages_.size(); ++i) {
      std::erase(stages_[i].awaited, id);
      std::erase(stages_[i].again, id);
      if (request.stages[i].at == At::kWaits) request.stages[i].at = At::kEnded;
    }
  }
  out.emplace_back(std::move(action));
  release(id);
}

// Gives back the slots that nobody reads any more, and forgets the request when it has none.
void RequestFlow::release(PipelineRequestId id) {
  Request& request = requests_.at(id);
  bool over = request.is_answered && request.is_taken;
  for (std::size_t i = 0; i < stages_.size(); ++i) {
    Progress& progress = request.stages[i];
    if (progress.at == At::kRuns) over = false;
    const bool is_read = std::any_of(stages_[i].read_by.begin(), stages_[i].read_by.end(),
                                     [&](std::size_t reader) { return request.stages[reader].at != At::kEnded; });
    const bool wanted = is_read || (stages_[i].has_output && !request.is_taken);
    if (!progress.slot || progress.at != At::kEnded || wanted) continue;
    stages_[i].slots[*progress.slot] = false;
    progress.slot.reset();
  }
  if (over) requests_.erase(id);
}

void RequestFlow::taken(Instant now, PipelineRequestId request, Actions& out) {
  const auto found = requests_.find(request);
  if (found == requests_.end() || !found->second.is_answered) return;
  found->second.is_taken = true;
  release(request);
  pump(now, out);
}

void RequestFlow::cancel(Instant now, PipelineRequestId request, Actions& out) {
  const auto found = requests_.find(request);
  if (found == requests_.end() || found->second.is_answered) return;
  answer(request, FlowEnd::kCancelled, "cancelled", out);
  pump(now, out);
}

void RequestFlow::abandon(Instant, const std::string& why, Actions& out) {
  std::vector<PipelineRequestId> open;
  for (const auto& [id, one] : requests_) {
    if (!one.is_answered) open.push_back(id);
  }
  for (const PipelineRequestId id : open) {
    const Request& one = requests_.at(id);
    const bool again = one.tries_left > 0 || !one.runs();
    answer(id, again ? FlowEnd::kReturned : FlowEnd::kFailed, why, out);
  }
}

void RequestFlow::wake(Instant now, Actions& out) {
  std::vector<PipelineRequestId> late;
  for (const auto& [id, one] : requests_) {
    if (!one.is_answered && one.deadline && *one.deadline <= now) late.push_back(id);
  }
  for (const PipelineRequestId id : late) {
    const std::string& failed = requests_.at(id).failed;
    answer(id, FlowEnd::kLate, "its deadline has passed" + (failed.empty() ? "" : "; before that " + failed), out);
  }
  for (std::size_t i = 0; settings_.stage_limit > Duration(0) && i < stages_.size(); ++i) {
    for (std::size_t j = 0; j < stages_[i].replicas.size(); ++j) {
      Replica& one = stages_[i].replicas[j];
      if (!one.runs || one.is_killed || now - one.since < settings_.stage_limit) continue;
      one.is_killed = true;
      out.emplace_back(Kill{i, j});
    }
  }
  if (!late.empty()) pump(now, out);
}

std::optional<Instant> RequestFlow::next_wakeup() const {
  std::optional<Instant> next;
  const auto at = [&](Instant when) { next = next ? std::min(*next, when) : when; };
  for (const auto& [id, one] : requests_) {
    if (!one.is_answered && one.deadline) at(*one.deadline);
  }
  for (const Stage& stage : stages_) {
    for (const Replica& one : stage.replicas) {
      if (settings_.stage_limit > Duration(0) && one.runs && !one.is_killed) at(one.since + settings_.stage_limit);
    }
  }
  return next;
}

std::size_t RequestFlow::slots_used(std::size_t stage) const {
  return static_cast<std::size_t>(std::count(stages_[stage].slots.begin(), stages_[stage].slots.end(), true));
}

}  // namespace fairlead

#include "node/functions.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "base/check.h"

namespace fairlead {
namespace {

std::size_t bucket_of(Duration time) {
  const double seconds = to_seconds(time);
  std::size_t bucket = 0;
  while (bucket < std::size(kDurationBucketsSeconds) && seconds > kDurationBucketsSeconds[bucket]) ++bucket;
  return bucket;
}

void count_in(FunctionStats& stats, const Complete& complete) {
  ++stats.invocations;
  switch (complete.start) {
    case StartKind::kDeviceWarm: ++stats.device_warm_starts; break;
    case StartKind::kHostWarm: ++stats.host_warm_starts; break;
    case StartKind::kCold: ++stats.cold_starts; break;
  }
  if (complete.outcome == OutcomeKind::kTimeout) ++stats.timeouts;
  if (complete.outcome == OutcomeKind::kCrashed || complete.outcome == OutcomeKind::kStartFailed) ++stats.crashes;
  if (complete.outcome != OutcomeKind::kSuccess) ++stats.errors;
  stats.service += complete.service;
  stats.queue_time += complete.queue_time;
  ++stats.duration_histogram[bucket_of(complete.service)];
}

}  // namespace

// One for each component, which is the most that it has stages, and one whose answer is on its way.
std::size_t pipeline_seats(const PipelineProgram& program) {
  return std::min<std::size_t>(program.dag.components.size() + 1, 8);
}

Functions::Functions() {
  requested_stats_.duration_histogram.resize(std::size(kDurationBucketsSeconds) + 1);
}

std::string flow_name(const FunctionRecord& record) {
  return record.version == 0 ? record.name : fmt::format("{}:{}", record.name, record.version);
}

FlowSpec flow_spec(const RegisteredFunction& function, Tenants& tenants) {
  const FunctionRecord& record = function.record;
  const auto gpu = gpu_settings(record.config);
  FL_CHECK(gpu.has_value(), "{}: {}", record.name, gpu.error().message);
  FlowSpec spec{.flow = function.flow, .weight = gpu->weight};
  spec.is_kernel_task = function.kernel_task != nullptr && !function.is_pipeline();
  if (function.is_pipeline()) {
    // Its slices are its own: it waits for nobody's turn, and has no instance anywhere else.
    spec.seats.assign(pipeline_seats(*function.kernel_task->pipeline), function.pipeline_device);
    spec.most_instances = 0;
    spec.request_percent = 100;
  }
  spec.timeout = std::chrono::seconds(record.config.timeout_seconds);
  if (record.reserved_concurrency) spec.max_concurrency = static_cast<std::size_t>(*record.reserved_concurrency);
  spec.expected_memory = gpu->share.memory.value_or(Bytes(0));
  if (!function.is_pipeline()) spec.mig_profile = gpu->mig_profile;  // it chooses its slices itself
  spec.tenant = tenants.id_of(gpu->tenant);
  if (gpu->objective_ms) spec.objective = std::chrono::milliseconds(*gpu->objective_ms);
  return spec;
}

RegisteredFunction& Functions::add_to(ByName& functions, FunctionRecord record,
                                      std::shared_ptr<const BundledTask> kernel_task) {
  const std::string name = flow_name(record);
  const FlowId flow(++last_flow_);
  const GpuId pipeline_device(kFirstPipelineDevice + flow.value());
  const auto [it, added] =
      functions.emplace(name, RegisteredFunction{flow, std::move(record), {}, std::move(kernel_task)});
  it->second.pipeline_device = pipeline_device;
  FL_CHECK(added, "function {} is registered already", name);
  it->second.stats.duration_histogram.resize(std::size(kDurationBucketsSeconds) + 1);
  by_flow_[flow] = &it->second;
  return it->second;
}

void Functions::remove_from(ByName& functions, const std::string& name) {
  const auto it = functions.find(name);
  FL_CHECK(it != functions.end(), "function {} is not registered", name);
  by_flow_.erase(it->second.flow);
  functions.erase(it);
}

RegisteredFunction& Functions::add(FunctionRecord record, std::shared_ptr<const BundledTask> kernel_task) {
  return add_to(by_name_, std::move(record), std::move(kernel_task));
}

void Functions::remove(const std::string& name) {
  remove_from(by_name_, name);
}

RegisteredFunction& Functions::add_requested(FunctionRecord record, std::shared_ptr<const BundledTask> kernel_task) {
  RegisteredFunction& function = add_to(requested_, std::move(record), std::move(kernel_task));
  function.requested = true;
  return function;
}

void Functions::remove_requested(const std::string& name) {
  remove_from(requested_, name);
}

RegisteredFunction* Functions::find_requested(const std::string& name) {
  const auto it = requested_.find(name);
  return it == requested_.end() ? nullptr : &it->second;
}

RegisteredFunction& Functions::add_version(FunctionRecord record, std::shared_ptr<const BundledTask> kernel_task) {
  return add_to(versions_, std::move(record), std::move(kernel_task));
}

void Functions::remove_version(const std::string& name, std::uint64_t version) {
  remove_from(versions_, flow_name({.name = name, .version = version}));
}

RegisteredFunction* Functions::find_version(const std::string& name, std::uint64_t version) {
  const auto it = versions_.find(flow_name({.name = name, .version = version}));
  return it == versions_.end() ? nullptr : &it->second;
}

RegisteredFunction* Functions::find_flow(const std::string& flow_name) {
  const auto it = versions_.find(flow_name);
  return it == versions_.end() ? find(flow_name) : &it->second;
}

// ':' is in no function's name, and what begins with "name:" stands together.
std::vector<RegisteredFunction*> Functions::family(const std::string& name) {
  std::vector<RegisteredFunction*> flows;
  if (RegisteredFunction* const latest = find(name)) flows.push_back(latest);
  const std::string prefix = name + ":";
  for (auto it = versions_.lower_bound(prefix); it != versions_.end() && it->first.starts_with(prefix); ++it) {
    flows.push_back(&it->second);
  }
  return flows;
}

RegisteredFunction* Functions::find(const std::string& name) {
  const auto it = by_name_.find(name);
  return it == by_name_.end() ? nullptr : &it->second;
}

RegisteredFunction* Functions::find(FlowId flow) {
  const auto it = by_flow_.find(flow);
  return it == by_flow_.end() ? nullptr : it->second;
}

Result<RegisteredFunction*> Functions::get(const std::string& name) {
  if (RegisteredFunction* function = find(name)) return function;
  return fail(Errc::kNotFound, "Function not found: {}", function_arn(name));
}

std::vector<std::string> Functions::code_paths() const {
  std::vector<std::string> paths;
  for (const auto& [name, function] : by_name_) paths.push_back(function.record.code_path);
  return paths;
}

Status Functions::begin_change(const std::string& name) {
  if (changing_.insert(name).second) return {};
  return fail(Errc::kConflict, "function {} is being changed by another request; try again", name);
}

void Functions::count(const Complete& complete) {
  RegisteredFunction* const function = find(complete.flow);
  if (function == nullptr) return;
  count_in(function->stats, complete);
  if (function->requested) count_in(requested_stats_, complete);
}

void Functions::start_ended(FlowId flow, std::string failure) {
  if (RegisteredFunction* const function = find(flow)) function->start_failure = std::move(failure);
}

void Functions::count_first_byte(FlowId flow, Duration after) {
  RegisteredFunction* const function = find(flow);
  if (function == nullptr) return;
  FunctionStats& stats = function->stats;
  stats.first_byte_histogram.resize(std::size(kDurationBucketsSeconds) + 1);
  ++stats.first_byte_histogram[bucket_of(after)];
  stats.first_byte += after;
}

void Functions::add_service(FlowId flow, Duration service) {
  RegisteredFunction* const function = find(flow);
  if (function == nullptr) return;
  function->stats.service += service;
  if (function->requested) requested_stats_.service += service;
}

}  // namespace fairlead

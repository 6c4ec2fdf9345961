#include "edge/metrics/metrics.h"

#include <fmt/format.h>

#include <array>
#include <iterator>
#include <memory>
#include <span>
#include <string_view>
#include <utility>

#include "edge/error_document.h"
#include "edge/kept_text.h"
#include "edge/metrics/open_metrics.h"

namespace fairlead {

namespace {

// A label value: backslash, quote and newline escaped.
std::string escape(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '\\' || c == '"') out.push_back('\\');
    if (c == '\n') {
      out += "\\n";
    } else {
      out.push_back(c);
    }
  }
  return out;
}

// Appends one metric family after the other: HELP, TYPE, then its samples.
class MetricWriter {
 public:
  void begin(std::string_view name, std::string_view type, std::string_view help) {
    name_ = name;
    fmt::format_to(std::back_inserter(text_), "# HELP {} {}\n# TYPE {} {}\n", name, help, name, type);
  }

  // `labels` is the text between the braces, values escaped; empty for none.
  template <typename T>
  void sample(std::string_view labels, T value, std::string_view suffix = "") {
    if (labels.empty()) {
      fmt::format_to(std::back_inserter(text_), "{}{} {}\n", name_, suffix, value);
    } else {
      fmt::format_to(std::back_inserter(text_), "{}{}{{{}}} {}\n", name_, suffix, labels, value);
    }
  }

  std::string take() { return std::move(text_); }

 private:
  std::string_view name_;
  std::string text_;
};

std::string function_label(const FunctionStatus& function) {
  return fmt::format("function=\"{}\"", escape(function.name));
}

// One family with one sample per function.
template <typename Value>
void per_function(MetricWriter& out, const NodeStatus& status, std::string_view name, std::string_view type,
                  std::string_view help, Value value) {
  out.begin(name, type, help);
  for (const FunctionStatus& function : status.functions) out.sample(function_label(function), value(function));
}

void write_flows(MetricWriter& out, const NodeStatus& status) {
  per_function(out, status, "fairlead_queue_depth", "gauge", "Invocations waiting in the function's queue.",
               [](const FunctionStatus& f) { return f.flow.queued; });
  per_function(out, status, "fairlead_in_flight", "gauge", "Invocations dispatched and not answered yet.",
               [](const FunctionStatus& f) { return f.flow.in_flight; });
  per_function(out, status, "fairlead_virtual_time_seconds", "gauge", "Virtual time of the function's flow.",
               [](const FunctionStatus& f) { return to_seconds(f.flow.virtual_time); });
  per_function(out, status, "fairlead_service_estimate_seconds", "gauge", "Expected GPU time of one invocation.",
               [](const FunctionStatus& f) { return to_seconds(f.flow.service_estimate); });
  out.begin("fairlead_flow_state", "gauge", "1 for the state that the function's flow is in.");
  for (const FunctionStatus& function : status.functions) {
    for (const FlowState state : {FlowState::kActive, FlowState::kThrottled, FlowState::kInactive}) {
      out.sample(fmt::format("{},state=\"{}\"", function_label(function), flow_state_name(state)),
                 function.flow.state == state ? 1 : 0);
    }
  }
}

// Counts by bucket, one more than there are bounds, or none; cumulative as Prometheus wants them.
void write_histogram(MetricWriter& out, const std::string& label, const std::vector<std::uint64_t>& counts,
                     std::span<const double> bounds, Duration sum) {
  std::uint64_t total = 0;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    total += counts[i];
    const std::string bound = i >= bounds.size() ? "+Inf" : fmt::format("{}", bounds[i]);
    out.sample(fmt::format("{},le=\"{}\"", label, bound), total, "_bucket");
  }
  if (counts.empty()) out.sample(label + ",le=\"+Inf\"", total, "_bucket");
  out.sample(label, to_seconds(sum), "_sum");
  out.sample(label, total, "_count");
}

// Only of functions whose GPUs are paced: where nobody has a quota, nobody waits.
void write_gate_waits(MetricWriter& out, const NodeStatus& status) {
  out.begin("fairlead_gate_wait_seconds", "histogram",
            "What processes of the function waited at the node's gate for turns.");
  for (const FunctionStatus& function : status.functions) {
    const auto& counts = function.share.waits.histogram;
    if (!counts.empty())
      write_histogram(out, function_label(function), counts, kGateWaitBucketsSeconds, function.share.waits.total);
  }
}

void write_shares(MetricWriter& out, const NodeStatus& status) {
  per_function(out, status, "fairlead_quota_request_percent", "gauge",
               "Per cent of the time of its GPU that an instance of the function is promised (gpu:quota-request).",
               [](const FunctionStatus& f) { return f.settings.share.request_percent; });
  per_function(out, status, "fairlead_quota_limit_percent", "gauge",
               "Per cent of the time of its GPU that an instance of the function gets at most (gpu:quota-limit).",
               [](const FunctionStatus& f) { return f.settings.share.limit_percent; });
  per_function(out, status, "fairlead_seats_wanted", "gauge", "Instances of the function that are to be kept.",
               [](const FunctionStatus& f) { return f.settings.seats(); });
  out.begin("fairlead_seats", "gauge", "Instances of the function that have a seat, by GPU.");
  for (const FunctionStatus& function : status.functions) {
    std::map<GpuId, std::size_t> by_gpu;
    for (const GpuId gpu : function.share.seats) ++by_gpu[gpu];
    for (const auto& [gpu, seats] : by_gpu) {
      out.sample(fmt::format("{},gpu=\"{}\"", function_label(function), gpu.value()), seats);
    }
  }
  out.begin(
      "fairlead_share_delivered_percent", "gauge",
      "Per cent of the time that the instance of the function with the least of it had lately, where it is measured.");
  for (const FunctionStatus& function : status.functions) {
    const auto& delivery = function.share.delivery;
    if (delivery) out.sample(function_label(function), delivery->delivered_percent);
  }
  out.begin("fairlead_share_delivered_last_minute_percent", "gauge", "The same instance's, of the last minute.");
  for (const FunctionStatus& function : status.functions) {
    const auto& delivery = function.share.delivery;
    if (delivery) out.sample(function_label(function), delivery->last_minute_percent);
  }
  out.begin("fairlead_share_credit_seconds", "gauge",
            "GPU time that the same instance was promised and has not had yet.");
  for (const FunctionStatus& function : status.functions) {
    const auto& delivery = function.share.delivery;
    if (delivery) out.sample(function_label(function), to_seconds(delivery->credit));
  }
  write_gate_waits(out, status);
  out.begin("fairlead_turns_evaded_total", "counter",
            "Instances of the function that computed outside of their turns, by the GPU's account: named, and stopped "
            "for it.");
  for (const FunctionStatus& function : status.functions) {
    out.sample(function_label(function) + ",what=\"named\"", function.share.evaded.named);
    out.sample(function_label(function) + ",what=\"stopped\"", function.share.evaded.stopped);
  }
}

void write_outcomes(MetricWriter& out, const NodeStatus& status) {
  out.begin("fairlead_invocations_total", "counter", "Invocations that ended, by outcome.");
  for (const FunctionStatus& function : status.functions) {
    const FunctionStats& stats = function.stats;
    const std::pair<std::string_view, std::uint64_t> outcomes[] = {
        {"success", stats.invocations - stats.errors},
        {"error", stats.errors - stats.timeouts - stats.crashes},
        {"timeout", stats.timeouts},
        {"crash", stats.crashes}};
    for (const auto& [outcome, count] : outcomes) {
      out.sample(fmt::format("{},outcome=\"{}\"", function_label(function), outcome), count);
    }
  }
}

void write_starts(MetricWriter& out, const NodeStatus& status) {
  out.begin("fairlead_starts_total", "counter",
            "Invocations by what they found: device-warm an instance with its memory on the GPU, host-warm an instance "
            "whose memory was on the host, cold no instance.");
  for (const FunctionStatus& function : status.functions) {
    const std::pair<StartKind, std::uint64_t> starts[] = {{StartKind::kDeviceWarm, function.stats.device_warm_starts},
                                                          {StartKind::kHostWarm, function.stats.host_warm_starts},
                                                          {StartKind::kCold, function.stats.cold_starts}};
    for (const auto& [start, count] : starts) {
      out.sample(fmt::format("{},start=\"{}\"", function_label(function), start_kind_name(start)), count);
    }
  }
}

void write_functions(MetricWriter& out, const NodeStatus& status) {
  write_outcomes(out, status);
  per_function(out, status, "fairlead_queue_seconds_total", "counter", "Time invocations spent queued.",
               [](const FunctionStatus& f) { return to_seconds(f.stats.queue_time); });
  per_function(out, status, "fairlead_service_seconds_total", "counter", "GPU time charged to the function.",
               [](const FunctionStatus& f) { return to_seconds(f.stats.service); });
  write_starts(out, status);
}

void write_function_memory(MetricWriter& out, const NodeStatus& status) {
  out.begin("fairlead_device_memory_bytes", "gauge",
            "Device memory of the function's instances: held in all, resident on the GPU, away on the host, fixed what "
            "of resident cannot move; expected what one instance is expected to need.");
  for (const FunctionStatus& function : status.functions) {
    const MemoryUse& use = function.memory;
    const std::pair<std::string_view, Bytes> parts[] = {{"held", use.held},
                                                        {"resident", use.resident},
                                                        {"away", use.away},
                                                        {"fixed", use.fixed},
                                                        {"expected", function.memory_expected}};
    for (const auto& [part, bytes] : parts) {
      out.sample(fmt::format("{},part=\"{}\"", function_label(function), part), bytes.count());
    }
  }
}

void write_calls(MetricWriter& out, const NodeStatus& status) {
  per_function(out, status, "fairlead_kernel_launches_total", "counter", "Kernels that the function launched.",
               [](const FunctionStatus& f) { return f.stats.launches; });
  per_function(out, status, "fairlead_gate_waits_total", "counter",
               "Launches that waited because memory was away or it was not its turn.",
               [](const FunctionStatus& f) { return f.stats.gate_waits; });
  per_function(out, status, "fairlead_gpu_time_not_reported_seconds_total", "counter",
               "GPU time that the device saw and the function's processes did not report; it was charged.",
               [](const FunctionStatus& f) { return to_seconds(f.stats.gpu_time_not_reported); });
  out.begin(
      "fairlead_shim_doubts_total", "counter",
      "What the shim left to the driver: calls in which something was in doubt, entry points it has no hook for.");
  for (const FunctionStatus& function : status.functions) {
    const std::string label = function_label(function);
    out.sample(label + ",what=\"call\"", function.stats.passed_through);
    out.sample(label + ",what=\"entry_point\"", function.stats.unhooked_functions);
  }
}

// One counter with two samples.
struct Labelled {
  std::string_view label;
  std::uint64_t value;
};
void counter_pair(MetricWriter& out, std::string_view name, std::string_view help, std::string_view label,
                  const Labelled& first, const Labelled& second) {
  out.begin(name, "counter", help);
  for (const Labelled& sample : {first, second}) {
    out.sample(fmt::format("{}=\"{}\"", label, sample.label), sample.value);
  }
}

void write_memory(MetricWriter& out, const NodeStatus& status) {
  write_function_memory(out, status);
  write_calls(out, status);
  const MemoryCounters& memory = status.counters.memory;
  counter_pair(out, "fairlead_swaps_total", "Moves of an instance's device memory, to the GPU (in) and away (out).",
               "direction", {"in", memory.swap_ins}, {"out", memory.swap_outs});
  counter_pair(out, "fairlead_swap_bytes_total", "Bytes of the moves that were done.", "direction",
               {"in", memory.bytes_in}, {"out", memory.bytes_out});
  counter_pair(out, "fairlead_prefetches_total",
               "Moves to the GPU ahead of an invocation, by whether they were over when it was dispatched.", "result",
               {"in_time", memory.prefetches_in_time}, {"late", memory.prefetches_late});
  counter_pair(out, "fairlead_room_requests_total", "Allocations that found the GPU full.", "result",
               {"granted", memory.room_granted}, {"refused", memory.room_refused});
  out.begin(
      "fairlead_starts_gave_way_total", "counter",
      "Instances that were stopped while they started, as others held the memory they asked for, and started again.");
  out.sample("", memory.starts_gave_way);
  out.begin("fairlead_swap_failures_total", "counter", "Moves that were not done, or not answered in time.");
  out.sample("", memory.swap_failures);
}

template <typename Value>
void per_device_server(MetricWriter& out, const NodeStatus& status, std::string_view name, std::string_view type,
                       std::string_view help, Value value) {
  out.begin(name, type, help);
  for (const DeviceServerStatus& server : status.device_servers) {
    value(server, fmt::format("gpu=\"{}\",tenant=\"{}\"", server.gpu.value(), escape(server.tenant)));
  }
}

void write_task_phases(MetricWriter& out, const DeviceServerStatus& server, const std::string& label) {
  const TaskPhases& phases = server.phases;
  const std::pair<std::string_view, Duration> all[] = {
      {"kernel_run", phases.kernel_run},   {"kernel_init", phases.kernel_init}, {"device_malloc", phases.device_malloc},
      {"device_copy", phases.device_copy}, {"data_layer", phases.data_layer},   {"overhead", phases.overhead}};
  for (const auto& [phase, time] : all) out.sample(fmt::format("{},phase=\"{}\"", label, phase), to_seconds(time));
}

template <typename Value>
void per_pipeline_stage(MetricWriter& out, const NodeStatus& status, std::string_view name, std::string_view type,
                        std::string_view help, Value value) {
  out.begin(name, type, help);
  for (const PipelineStatus& pipeline : status.pipelines) {
    for (std::size_t i = 0; i < pipeline.stages.size(); ++i) {
      const PipelineStatus::Stage& stage = pipeline.stages[i];
      out.sample(
          fmt::format("function=\"{}\",stage=\"{}\",gpu=\"{}\"", escape(pipeline.function), i, stage.gpu.value()),
          value(stage));
    }
  }
}

void write_pipelines(MetricWriter& out, const NodeStatus& status) {
  if (status.slice_cuts.is_on) {
    out.begin("fairlead_slice_cuts_total", "counter", "Times that slices of a GPU were cut anew for a pipeline.");
    out.sample("result=\"done\"", status.slice_cuts.cuts);
    out.sample("result=\"failed\"", status.slice_cuts.failed);
  }
  if (status.pipelines.empty()) return;
  using Stage = PipelineStatus::Stage;
  per_pipeline_stage(out, status, "fairlead_pipeline_stage_requests_total", "counter",
                     "Requests that the stage has run.", [](const Stage& stage) { return stage.requests; });
  per_pipeline_stage(out, status, "fairlead_pipeline_stage_restarts_total", "counter",
                     "Servers of the stage that ended.", [](const Stage& stage) { return stage.restarts; });
  per_pipeline_stage(out, status, "fairlead_pipeline_stage_gpu_seconds_total", "counter", "GPU time of the stage.",
                     [](const Stage& stage) { return to_seconds(stage.gpu_time); });
  per_pipeline_stage(out, status, "fairlead_pipeline_ring_slots_used", "gauge",
                     "Slots of the stage's ring that hold a tensor.",
                     [](const Stage& stage) { return stage.ring_used; });
  out.begin("fairlead_pipeline_moves_total", "counter", "Pipelines that moved to one slice.");
  for (const PipelineStatus& pipeline : status.pipelines) {
    out.sample(fmt::format("function=\"{}\"", escape(pipeline.function)), pipeline.moves);
  }
}

void write_device_servers(MetricWriter& out, const NodeStatus& status) {
  using Server = DeviceServerStatus;
  per_device_server(out, status, "fairlead_device_server_restarts_total", "counter",
                    "Device servers that ended and were started anew.",
                    [&](const Server& s, const std::string& label) { out.sample(label, s.restarts); });
  per_device_server(out, status, "fairlead_device_server_sessions", "gauge", "Kernel tasks registered with it.",
                    [&](const Server& s, const std::string& label) { out.sample(label, s.sessions); });
  per_device_server(out, status, "fairlead_kernel_task_calls_total", "counter",
                    "Calls of kernel tasks that were answered.",
                    [&](const Server& s, const std::string& label) { out.sample(label, s.calls); });
  per_device_server(out, status, "fairlead_kernel_task_phase_seconds_total", "counter", "Where the time of calls went.",
                    [&](const Server& s, const std::string& label) { write_task_phases(out, s, label); });
  per_device_server(
      out, status, "fairlead_object_lookups_total", "counter",
      "Objects that calls needed, by where they were: on the GPU (hit), in the device server's host memory "
      "(host_hit), in neither (miss).",
      [&](const Server& s, const std::string& label) {
        out.sample(label + ",result=\"hit\"", s.hits);
        out.sample(label + ",result=\"host_hit\"", s.host_hits);
        out.sample(label + ",result=\"miss\"", s.misses);
      });
  per_device_server(out, status, "fairlead_object_evictions_total", "counter", "Objects that made room on the GPU.",
                    [&](const Server& s, const std::string& label) { out.sample(label, s.evictions); });
  per_device_server(out, status, "fairlead_device_server_object_bytes", "gauge", "Bytes of its objects by place.",
                    [&](const Server& s, const std::string& label) {
                      out.sample(label + ",place=\"device\"", s.device_used.count());
                      out.sample(label + ",place=\"host\"", s.host_used.count());
                    });
  per_device_server(out, status, "fairlead_device_server_modules", "gauge",
                    "Modules it had loaded when it answered last.",
                    [&](const Server& s, const std::string& label) { out.sample(label, s.modules); });
}

template <typename Value>
void per_model_gpu(MetricWriter& out, const NodeStatus& status, std::string_view name, std::string_view type,
                   std::string_view help, Value value) {
  out.begin(name, type, help);
  for (const ModelStatus& models : status.models) value(models, fmt::format("gpu=\"{}\"", models.gpu.value()));
}

void write_models(MetricWriter& out, const NodeStatus& status) {
  using Models = ModelStatus;
  per_model_gpu(out, status, "fairlead_model_bytes", "gauge",
                "Device memory of models that programs share: in use, unused (it goes when room is needed), lingering "
                "(dropped, perhaps still mapped by an instance).",
                [&](const Models& m, const std::string& label) {
                  out.sample(label + ",state=\"held\"", (m.used - m.unused - m.lingering).count());
                  out.sample(label + ",state=\"unused\"", m.unused.count());
                  out.sample(label + ",state=\"lingering\"", m.lingering.count());
                });
  per_model_gpu(out, status, "fairlead_model_tenant_bytes", "gauge",
                "The same by the tenant whose budget it counts in.", [&](const Models& m, const std::string& label) {
                  for (const auto& [tenant, bytes] : m.by_tenant) {
                    out.sample(fmt::format("{},tenant=\"{}\"", label, escape(tenant)), bytes.count());
                  }
                });
  per_model_gpu(out, status, "fairlead_model_limit_bytes", "gauge", "Device memory that models may take.",
                [&](const Models& m, const std::string& label) { out.sample(label, m.memory.count()); });
  per_model_gpu(out, status, "fairlead_model_saved_bytes", "gauge",
                "What private copies of the same models would take more.",
                [&](const Models& m, const std::string& label) { out.sample(label, m.saved.count()); });
  per_model_gpu(out, status, "fairlead_models", "gauge", "Sealed models.",
                [&](const Models& m, const std::string& label) { out.sample(label, m.tensors); });
  per_model_gpu(out, status, "fairlead_model_holders", "gauge", "Processes that have a model open, summed over models.",
                [&](const Models& m, const std::string& label) { out.sample(label, m.holders); });
  per_model_gpu(
      out, status, "fairlead_model_events_total", "counter",
      "Models stored, opens answered with one that was there, part of those found by content, models dropped for "
      "room.",
      [&](const Models& m, const std::string& label) {
        out.sample(label + ",event=\"stored\"", m.stored);
        out.sample(label + ",event=\"shared\"", m.shared);
        out.sample(label + ",event=\"by_content\"", m.by_content);
        out.sample(label + ",event=\"evicted\"", m.evicted);
      });
  per_model_gpu(out, status, "fairlead_model_server_restarts_total", "counter",
                "Model servers that ended by themselves.",
                [&](const Models& m, const std::string& label) { out.sample(label, m.restarts); });
}

void write_objects(MetricWriter& out, const NodeStatus& status) {
  const ObjectStore::Usage& usage = status.objects;
  out.begin("fairlead_objects", "gauge", "Objects of the node, wherever they are.");
  out.sample("", usage.objects);
  out.begin("fairlead_object_bytes", "gauge", "Bytes of objects by place; equal content of a tenant counts once.");
  out.sample("place=\"memory\"", usage.memory.count());
  out.sample("place=\"disk\"", usage.spilled.count());
  out.sample("place=\"device\"", usage.on_device.count());
  out.begin("fairlead_object_spills_total", "counter", "Objects moved to disk to make room in memory.");
  out.sample("", usage.spills);
  out.begin("fairlead_object_reads_back_total", "counter", "Objects that came back from disk because they were used.");
  out.sample("", usage.reads_back);
}

void write_durations(MetricWriter& out, const NodeStatus& status) {
  out.begin("fairlead_invocation_duration_seconds", "histogram", "GPU time charged per invocation.");
  for (const FunctionStatus& function : status.functions) {
    write_histogram(out, function_label(function), function.stats.duration_histogram, kDurationBucketsSeconds,
                    function.stats.service);
  }
}

void write_instances(MetricWriter& out, const NodeStatus& status) {
  out.begin("fairlead_instances", "gauge", "Live instances by state.");
  for (const FunctionStatus& function : status.functions) {
    const std::pair<std::string_view, std::size_t> states[] = {{"idle", function.instances_idle},
                                                               {"busy", function.instances_busy},
                                                               {"starting", function.instances_starting}};
    for (const auto& [state, count] : states) {
      out.sample(fmt::format("{},state=\"{}\"", function_label(function), state), count);
    }
  }
}

template <typename Value>
void per_gpu(MetricWriter& out, const NodeStatus& status, std::string_view name, std::string_view help, Value value,
             std::string_view type = "gauge") {
  out.begin(name, type, help);
  for (const GpuStatus& gpu : status.gpus) {
    out.sample(fmt::format("gpu=\"{}\",uuid=\"{}\",name=\"{}\"", gpu.view.gpu.value(), escape(gpu.device.uuid),
                           escape(gpu.device.name)),
               value(gpu));
  }
}

void write_gpus(MetricWriter& out, const NodeStatus& status) {
  per_gpu(out, status, "fairlead_gpu_utilisation", "Share of the last period in which the GPU ran a kernel, 0 to 1.",
          [](const GpuStatus& gpu) { return gpu.utilisation; });
  per_gpu(out, status, "fairlead_gpu_memory_used_bytes", "Device memory in use.",
          [](const GpuStatus& gpu) { return gpu.memory_used.count(); });
  per_gpu(out, status, "fairlead_gpu_memory_total_bytes", "Device memory.",
          [](const GpuStatus& gpu) { return gpu.device.memory.count(); });
  per_gpu(out, status, "fairlead_gpu_memory_admitted_bytes", "Device memory that what runs is expected to need.",
          [](const GpuStatus& gpu) { return gpu.view.memory_admitted.count(); });
  per_gpu(out, status, "fairlead_gpu_slots_in_use", "Invocations that run on the GPU now (at most D).",
          [](const GpuStatus& gpu) { return gpu.view.slots_in_use; });
  per_gpu(out, status, "fairlead_gpu_slots", "D: invocations that may run on the GPU at the same time.",
          [](const GpuStatus& gpu) { return gpu.view.slots; });
  per_gpu(out, status, "fairlead_gpu_tokens_in_use",
          "Old name of fairlead_gpu_slots_in_use; goes with the next release.",
          [](const GpuStatus& gpu) { return gpu.view.slots_in_use; });
  per_gpu(out, status, "fairlead_gpu_tokens", "Old name of fairlead_gpu_slots; goes with the next release.",
          [](const GpuStatus& gpu) { return gpu.view.slots; });
  per_gpu(out, status, "fairlead_gpu_task_lanes", "Calls of kernel tasks that may run on the GPU at the same time now.",
          [](const GpuStatus& gpu) { return gpu.view.task_lanes; });
  per_gpu(out, status, "fairlead_gpu_task_loads", "Calls of kernel tasks that load constants now, and hold no lane.",
          [](const GpuStatus& gpu) { return gpu.view.task_loads; });
  per_gpu(out, status, "fairlead_gpu_serves", "1 while the GPU gets work, 0 while it is drained or repaired.",
          [](const GpuStatus& gpu) { return gpu.view.serves ? 1 : 0; });
  per_gpu(out, status, "fairlead_gpu_instances", "Live instances placed on the GPU.",
          [](const GpuStatus& gpu) { return gpu.view.instances; });
  per_gpu(
      out, status, "fairlead_mps_restarts_total", "Times the GPU's MPS daemon was restarted after a fault.",
      [](const GpuStatus& gpu) { return gpu.mps_restarts; }, "counter");
}

void write_idle_slots(MetricWriter& out, const IdleSeconds& seconds, std::string_view name, std::string_view help) {
  out.begin(name, "counter", help);
  for (std::size_t i = 0; i < kIdleReasons; ++i) {
    out.sample(fmt::format("reason=\"{}\"", idle_reason_name(static_cast<IdleReason>(i))), to_seconds(seconds[i]));
  }
}

void write_node(MetricWriter& out, const NodeStatus& status) {
  out.begin("fairlead_info", "gauge", "1; version, queueing policy, sharing mode and memory policy are labels.");
  out.sample(fmt::format("version=\"{}\",policy=\"{}\",sharing=\"{}\",memory_policy=\"{}\"", escape(status.version),
                         escape(status.policy), escape(status.sharing), escape(status.memory_policy)),
             1);
  out.begin("fairlead_uptime_seconds", "gauge", "Time since the node started.");
  out.sample("", to_seconds(status.uptime));
  out.begin("fairlead_global_virtual_time_seconds", "gauge",
            "Virtual time of the node: the least of its active flows.");
  out.sample("", to_seconds(status.global_virtual_time));
  out.begin("fairlead_queued", "gauge", "Invocations waiting in all queues.");
  out.sample("", status.queued);
  out.begin("fairlead_evictions_total", "counter", "Warm instances ended to make room.");
  out.sample("", status.counters.evictions);
  out.begin(
      "fairlead_task_loads_given_up_total", "counter",
      "Calls of kernel tasks whose constants took so long to load that others' loads did not wait for them any more.");
  out.sample("", status.counters.loads_given_up);
  out.begin("fairlead_rejected_total", "counter", "Invocations refused because a queue was full.");
  out.sample("", status.counters.rejected);
  write_idle_slots(
      out, status.counters.idle_slots, "fairlead_idle_slot_seconds_total",
      "Slots that idled beside queued work, by what the work whose turn it was waited for; \"unnamed\" is a fault.");
  write_idle_slots(out, status.counters.idle_slots, "fairlead_idle_token_seconds_total",
                   "Old name of fairlead_idle_slot_seconds_total; goes with the next release.");
  out.begin("fairlead_spawner_restarts_total", "counter",
            "Times the process that makes sandboxes had ended and was replaced.");
  out.sample("", status.spawner_restarts);
  out.begin("fairlead_draining", "gauge", "1 while the node accepts no new invocations.");
  out.sample("", status.draining ? 1 : 0);
  out.begin("process_resident_memory_bytes", "gauge", "Resident memory of the node's own process.");
  out.sample("", status.resident.count());
}

void write_task_requests(MetricWriter& out, const TaskRequestsStatus& requests) {
  out.begin("fairlead_task_requests_kept", "gauge",
            "Different tasks of one-off requests that are warm or may become so.");
  out.sample("", requests.kept);
  out.begin("fairlead_task_requests_total", "counter", "One-off requests of kernel tasks that ended, by outcome.");
  out.sample("outcome=\"success\"", requests.stats.invocations - requests.stats.errors);
  out.sample("outcome=\"error\"", requests.stats.errors);
  out.begin("fairlead_task_requests_service_seconds_total", "counter", "GPU time charged to one-off requests.");
  out.sample("", to_seconds(requests.stats.service));
}

void write_graphs(MetricWriter& out, const GraphCounters& graphs) {
  out.begin("fairlead_graph_runs_active", "gauge", "Runs of graphs that go on.");
  out.sample("", graphs.active);
  out.begin("fairlead_graph_runs_total", "counter", "Runs of graphs that ended, by outcome.");
  out.sample("outcome=\"done\"", graphs.runs_done);
  out.sample("outcome=\"failed\"", graphs.runs_failed);
  out.sample("outcome=\"cancelled\"", graphs.runs_cancelled);
  out.begin("fairlead_graph_nodes_total", "counter", "Nodes of graphs that ended, by outcome.");
  out.sample("outcome=\"done\"", graphs.nodes_done);
  out.sample("outcome=\"failed\"", graphs.nodes_failed);
  out.sample("outcome=\"skipped\"", graphs.nodes_skipped);
}

void write_events(MetricWriter& out, const EventCounters& events) {
  out.begin("fairlead_events", "gauge", "Event invocations that were accepted and are not over, by where they are.");
  out.sample("state=\"waiting\"", events.waiting);
  out.sample("state=\"running\"", events.running);
  out.begin("fairlead_event_retries_total", "counter", "Event invocations that failed and are tried again.");
  out.sample("", events.retries);
  out.begin("fairlead_event_node_faults_total", "counter",
            "Event invocations that failed by the node's fault: tried again, and no attempt.");
  out.sample("", events.node_faults);
  out.begin("fairlead_event_dead_letters_total", "counter", "Event invocations that became dead letters.");
  out.sample("", events.dead_letters);
  out.begin("fairlead_event_redriven_total", "counter", "Dead letters that became event invocations again.");
  out.sample("", events.redriven);
}

void write_damage(MetricWriter& out, const StateDamage& damage) {
  out.begin("fairlead_state_damage", "gauge", "What this start of the node found lost or damaged in its state.");
  out.sample("what=\"lost_changes\"", damage.lost_changes);
  out.sample("what=\"lost_events\"", damage.lost_events);
  out.sample("what=\"missing_events\"", damage.missing_events);
  out.sample("what=\"damaged_events\"", damage.damaged_events);
}

}  // namespace

std::string render_metrics(const NodeStatus& status) {
  MetricWriter out;
  write_node(out, status);
  write_flows(out, status);
  write_shares(out, status);
  write_functions(out, status);
  write_memory(out, status);
  write_objects(out, status);
  write_task_requests(out, status.task_requests);
  write_graphs(out, status.graphs);
  write_events(out, status.events);
  write_damage(out, status.damage);
  write_device_servers(out, status);
  write_pipelines(out, status);
  write_models(out, status);
  write_durations(out, status);
  write_instances(out, status);
  write_gpus(out, status);
  return out.take();
}

Edge metrics_edge(NodeService& node, MoreMetrics more) {
  Edge edge{.name = "metrics", .prefixes = {"/metrics"}, .errors = document_errors()};
  const auto whole = [&node, more = std::move(more)](bool with_exemplars) {
    return render_metrics(node.status()) + (more ? more(with_exemplars) : std::string());
  };
  const auto plain = std::make_shared<KeptText>([whole] { return whole(false); });
  const auto open = std::make_shared<KeptText>([whole] { return to_open_metrics(whole(true)); });
  edge.routes.add(
      "GET", "/metrics",
      [plain, open](RouteCall call) {
        const bool is_open = wants_open_metrics(call.exchange.request().header("Accept"));
        const std::string_view type = is_open ? kOpenMetricsType : "text/plain; version=0.0.4; charset=utf-8";
        call.exchange.respond({.status = 200,
                               .headers = {{"Content-Type", std::string(type)}, {"Vary", "Accept"}},
                               .body = is_open ? open->get() : plain->get()});
      },
      Permission::kReadNode);
  return edge;
}

}  // namespace fairlead

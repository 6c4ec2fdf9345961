#include "gateway/metrics.h"

#include <fmt/format.h>

#include <array>
#include <iterator>
#include <string_view>
#include <utility>

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

void write_functions(MetricWriter& out, const NodeStatus& status) {
  write_outcomes(out, status);
  per_function(out, status, "fairlead_queue_seconds_total", "counter", "Time invocations spent queued.",
               [](const FunctionStatus& f) { return to_seconds(f.stats.queue_time); });
  per_function(out, status, "fairlead_service_seconds_total", "counter", "GPU time charged to the function.",
               [](const FunctionStatus& f) { return to_seconds(f.stats.service); });
  per_function(out, status, "fairlead_cold_starts_total", "counter",
               "Invocations that waited for an instance to start.",
               [](const FunctionStatus& f) { return f.stats.cold_starts; });
  per_function(out, status, "fairlead_warm_starts_total", "counter", "Invocations that found a warm instance.",
               [](const FunctionStatus& f) { return f.stats.warm_starts; });
}

void write_durations(MetricWriter& out, const NodeStatus& status) {
  out.begin("fairlead_invocation_duration_seconds", "histogram", "GPU time charged per invocation.");
  for (const FunctionStatus& function : status.functions) {
    const auto& counts = function.stats.duration_histogram;
    const std::string label = function_label(function);
    std::uint64_t total = 0;
    for (std::size_t i = 0; i < counts.size(); ++i) {
      total += counts[i];
      const bool is_last = i >= std::size(kDurationBucketsSeconds);
      const std::string bound = is_last ? "+Inf" : fmt::format("{}", kDurationBucketsSeconds[i]);
      out.sample(fmt::format("{},le=\"{}\"", label, bound), total, "_bucket");
    }
    if (counts.empty()) out.sample(label + ",le=\"+Inf\"", total, "_bucket");
    out.sample(label, to_seconds(function.stats.service), "_sum");
    out.sample(label, total, "_count");
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
void per_gpu(MetricWriter& out, const NodeStatus& status, std::string_view name, std::string_view help, Value value) {
  out.begin(name, "gauge", help);
  for (const GpuStatus& gpu : status.gpus) {
    out.sample(
        fmt::format("gpu=\"{}\",uuid=\"{}\",name=\"{}\"", gpu.view.gpu.value(), escape(gpu.uuid), escape(gpu.name)),
        value(gpu));
  }
}

void write_gpus(MetricWriter& out, const NodeStatus& status) {
  per_gpu(out, status, "fairlead_gpu_utilisation", "Share of the last period in which the GPU ran a kernel, 0 to 1.",
          [](const GpuStatus& gpu) { return gpu.utilisation; });
  per_gpu(out, status, "fairlead_gpu_memory_used_bytes", "Device memory in use.",
          [](const GpuStatus& gpu) { return gpu.memory_used.count(); });
  per_gpu(out, status, "fairlead_gpu_memory_total_bytes", "Device memory.",
          [](const GpuStatus& gpu) { return gpu.memory_total.count(); });
  per_gpu(out, status, "fairlead_gpu_tokens_in_use", "Invocations that run on the GPU now (at most D).",
          [](const GpuStatus& gpu) { return gpu.view.tokens_in_use; });
  per_gpu(out, status, "fairlead_gpu_instances", "Live instances placed on the GPU.",
          [](const GpuStatus& gpu) { return gpu.view.instances; });
}

void write_node(MetricWriter& out, const NodeStatus& status) {
  out.begin("fairlead_info", "gauge", "1; version and queueing policy are labels.");
  out.sample(fmt::format("version=\"{}\",policy=\"{}\"", escape(status.version), escape(status.policy)), 1);
  out.begin("fairlead_uptime_seconds", "gauge", "Time since the node started.");
  out.sample("", to_seconds(status.uptime));
  out.begin("fairlead_global_virtual_time_seconds", "gauge",
            "Virtual time of the node: the least of its active flows.");
  out.sample("", to_seconds(status.global_virtual_time));
  out.begin("fairlead_queued", "gauge", "Invocations waiting in all queues.");
  out.sample("", status.queued);
  out.begin("fairlead_evictions_total", "counter", "Warm instances ended to make room.");
  out.sample("", status.counters.evictions);
  out.begin("fairlead_rejected_total", "counter", "Invocations refused because a queue was full.");
  out.sample("", status.counters.rejected);
  out.begin("fairlead_draining", "gauge", "1 while the node accepts no new invocations.");
  out.sample("", status.draining ? 1 : 0);
  out.begin("process_resident_memory_bytes", "gauge", "Resident memory of the node's own process.");
  out.sample("", status.resident.count());
}

}  // namespace

std::string render_metrics(const NodeStatus& status) {
  MetricWriter out;
  write_node(out, status);
  write_flows(out, status);
  write_functions(out, status);
  write_durations(out, status);
  write_instances(out, status);
  write_gpus(out, status);
  return out.take();
}

void add_metrics_routes(Router& router, NodeService& node) {
  router.add("GET", "/metrics", [&node](RouteCall call) {
    call.exchange.respond({.status = 200,
                           .headers = {{"Content-Type", "text/plain; version=0.0.4; charset=utf-8"}},
                           .body = render_metrics(node.status())});
  });
}

}  // namespace fairlead

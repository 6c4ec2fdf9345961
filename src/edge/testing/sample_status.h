// For tests: a node in which something is in every place that people look at.
#pragma once

#include "edge/node_service.h"

namespace fairlead {

inline NodeStatus sample_status() {
  NodeStatus status{.version = "1.2.3", .policy = "mqfq-sticky"};
  status.uptime = std::chrono::seconds(90);
  status.memory_policy = "prefetch-swap";
  status.queued = 4;
  status.counters.evictions = 5;
  status.counters.memory = {.swap_ins = 3, .swap_outs = 4, .bytes_out = 4096, .prefetches_late = 2, .room_refused = 1};
  status.resident = mib(10);
  FunctionStatus function{.name = "f"};
  function.flow = {.flow = FlowId(7), .state = FlowState::kThrottled, .queued = 4, .in_flight = 2};
  function.flow.virtual_time = std::chrono::milliseconds(1500);
  function.stats = {.invocations = 10,
                    .errors = 4,
                    .timeouts = 1,
                    .crashes = 1,
                    .device_warm_starts = 5,
                    .host_warm_starts = 2,
                    .cold_starts = 3};
  function.stats.service = std::chrono::seconds(2);
  function.stats.duration_histogram.assign(std::size(kDurationBucketsSeconds) + 1, 0);
  function.stats.duration_histogram[0] = 6;
  function.stats.duration_histogram[1] = 3;
  function.stats.duration_histogram.back() = 1;
  function.instances_busy = 2;
  function.memory = {.held = mib(300), .resident = mib(100), .away = mib(200), .fixed = mib(10)};
  function.memory_expected = mib(400);
  function.settings.share.request_percent = 34;
  function.settings.share.limit_percent = 50;
  function.settings.replicas = {.least = 2, .most = 3};
  function.share = {.seats = {GpuId(1), GpuId(1)},
                    .delivery = ShareDelivery{.window = std::chrono::seconds(1),
                                              .delivered_percent = 33.5,
                                              .last_minute_percent = 34.25,
                                              .credit = std::chrono::microseconds(62500)},
                    .waits = {.total = std::chrono::milliseconds(500)},
                    .evaded = {.named = 2, .stopped = 1, .last = "instance 9 used"}};
  function.share.waits.histogram.assign(std::size(kGateWaitBucketsSeconds) + 1, 0);
  function.share.waits.histogram[2] = 4;
  function.share.waits.histogram.back() = 3;
  status.functions.push_back(function);
  GpuStatus gpu{.view = {.gpu = GpuId(1), .slots_in_use = 2, .instances = 2},
                .device = {.id = GpuId(1), .name = "GPU \"x\"\\", .uuid = "MIG-1", .gpu_uuid = "GPU-1"}};
  gpu.device.slice = Slice{.profile = "3g.40gb", .start = 4, .size = 4};
  gpu.device.memory = gib(80);
  gpu.view.slots = 3;
  gpu.view.serves = false;
  gpu.state = "draining";
  gpu.reason = "Xid 48";
  gpu.mps_restarts = 4;
  status.sharing = "mps";
  gpu.utilisation = 0.5;
  status.gpus.push_back(gpu);
  status.settings.policy.by_tenant = true;
  status.settings.core.eviction = EvictionKind::kCost;
  status.tenants = {{.name = "vision", .share = {.weight = 2, .max_concurrency = 3}, .functions = 1, .in_flight = 2}};
  status.instances.push_back({InstanceId(9), FlowId(7), GpuId(1), InstanceState::kBusy, {}});
  return status;
}

}  // namespace fairlead

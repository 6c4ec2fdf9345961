// The parts of a core, put together by hand: each is tested alone, beside the tables that it decides from.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <vector>

#include "decide/core/core_test_support.h"
#include "decide/core/dispatchable.h"
#include "decide/core/flow_news.h"
#include "decide/core/flow_outlook.h"
#include "decide/core/instance_keeper.h"
#include "decide/core/lane_meter.h"
#include "decide/core/runs.h"
#include "decide/core/start_planner.h"
#include "decide/core/tables.h"

namespace fairlead::testing {

inline constexpr FlowId kA(1), kB(2), kC(3);
inline constexpr GpuId kGpu(1), kOther(2);

class CoreParts : public ::testing::Test {
 protected:
  explicit CoreParts(const CoreOptions& options = {}, std::string_view policy = "mqfq-sticky")
      : tables{.options = options, .queue = policy_named(policy)}, outlook(tables, options.eviction) {}

  void add_gpu(GpuId gpu = kGpu, std::size_t slots = 2, Bytes memory = Bytes(0)) {
    tables.pool.add_gpu(gpu, {.slots = slots, .clients = tables.options.instances_per_gpu, .memory = memory});
    residency.add_gpu(gpu, memory);
  }
  void add(const FlowSpec& spec) {
    ASSERT_TRUE(tables.functions.try_emplace(spec.flow, {spec}).second);
    residency.add_function(spec.flow, spec.expected_memory);
    tables.queue->add_flow(spec.flow, {.weight = spec.weight, .tenant = spec.tenant});
    tables.queue->set_max_concurrency(spec.flow, spec.max_concurrency);
    tables.invocations.know(spec.tenant);
  }
  void arrive(std::uint64_t invocation, FlowId flow, Instant deadline = Instant::max()) {
    tables.invocations.arrive(now, InvocationId(invocation), flow, tables.functions.at(flow).spec.tenant, deadline);
    tables.queue->on_arrival(now, flow, InvocationId(invocation));
  }
  void pass(Duration time) { tables.latest = now += time; }

  // One that starts ahead.
  Instance& start(FlowId flow, GpuId gpu = kGpu, InvocationId bound = {}) {
    const Placement there{.gpu = gpu, .memory = residency.expected(flow)};
    return *tables.pool.find(keeper.start(now, flow, there, bound, out));
  }
  // One that is idle.
  Instance& idle(FlowId flow, GpuId gpu = kGpu) {
    Instance& instance = start(flow, gpu);
    residency.ready(instance.id);
    keeper.clear_deadline(instance.id);
    tables.pool.take(instance, InstanceEvent::kReady);
    residency.started(now, instance.id);
    keeper.count_memory(instance);
    news.note_setup(flow);
    news.note_supply(flow);
    return instance;
  }
  // The head of the flow's queue, bound to the instance, which is idle, and delivered.
  InvocationId run(Instance& instance) {
    const auto choice = tables.queue->choose(now, dispatchable);
    FL_CHECK(choice && choice->flow == instance.flow);
    LiveInvocation& chosen = tables.invocations.at(choice->invocation);
    chosen.dispatched = now;
    chosen.instance = instance.id;
    residency.run(now, instance.id, residency.expected(instance.flow));
    tables.pool.bind(instance, choice->invocation);
    runs.begin(now, instance, out);
    return choice->invocation;
  }
  std::vector<std::string> taken() {
    std::vector<std::string> lines;
    for (const Action& action : out) lines.push_back(brief(action));
    out.clear();
    return lines;
  }

  Instant now{};
  Actions out;
  CoreTables tables;
  FlowOutlook outlook;
  const Placer placer{outlook.eviction(), tables.slices};
  Residency residency{{}, std::make_unique<LruSwap>(), outlook};
  FlowNews news{tables};
  StartPlanner planner{tables, residency, placer};
  Dispatchable dispatchable{tables, residency, placer, planner};
  InstanceKeeper keeper{tables, residency, news};
  LaneMeter lanes{tables};
  Runs runs{tables, keeper, lanes};
};

}  // namespace fairlead::testing

// Asynchronous invocations: on disk before they are accepted, submitted when the core has room, tried again when they fail,
// kept as dead letters in the end. EventQueue decides; the store writes; Invocations runs them.
//
//   accept ──written──> EventQueue ──submit──> Invocations ──over──> forgotten | written with its next attempt | dead letter
//                           ^                                                                                      │
//                           └───────────────────────────────── redrive ───────────────────────────────────────────┘
//
// Threads: everything on the io_context's thread.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "edge/event_service.h"
#include "edge/node_service.h"
#include "node/event_configs.h"
#include "node/event_queue.h"
#include "node/failure_words.h"
#include "node/functions.h"
#include "node/invocations.h"
#include "node/published_versions.h"
#include "node/request_id.h"
#include "store/store.h"

namespace fairlead {

class AsyncInvocations final : public EventService {
 public:
  // `written` is called each time something about an invocation that is over is on disk.
  AsyncInvocations(boost::asio::io_context& io, EventQueueOptions options, Store& store, Functions& functions,
                   RequestIds& request_ids, Invocations& invocations, FailureWords words,
                   std::function<void()> written);

  // As EventQueue has it.
  void count_in(std::shared_ptr<ByteBudget> memory) { queue_.count_in(std::move(memory)); }

  // Who knows versions and aliases; without, there is $LATEST alone.
  void set_versions(PublishedVersions& versions) { versions_ = &versions; }

  // With a common store: whether this node may start events now (store/shared_store.h).
  void set_lease(std::function<bool()> may_start) { lease_.may_start = std::move(may_start); }
  // What has not been started is others' to claim, and what runs is not tried again or buried here.
  void lose_lease();
  // Room for events of nodes that are gone, at most so many; then those that came.
  std::size_t reserve_claim(std::size_t most) { return now_.is_draining ? 0 : queue_.reserve_places(most, ""); }
  void take_claimed(std::size_t reserved, std::vector<QueuedEvent> events);
  void config_seen(const std::string& function, const std::optional<EventInvokeConfig>& config) {
    configs_.seen(function, config);
  }

  // Found on disk at the start.
  void restore(std::vector<QueuedEvent> events, std::map<std::string, EventInvokeConfig> configs);
  void accept(InvokeRequest request, NodeService::Callback<std::string> accepted);
  // What is ready goes to the core, as far as that has room.
  void submit();
  // No more are accepted or submitted; what waits stays on disk for the next start.
  void drain() { now_.is_draining = true; }
  // It may have room now: what waits for that is tried at once.
  void function_changed(const std::string& name);
  void node_recovered();  // what waits for that is tried at once
  void function_removed(const std::string& name);

  void set_config(std::string function, EventInvokeConfig config, Callback<EventInvokeConfig> done) override;
  Result<EventInvokeConfig> config(const std::string& function) override { return configs_.get(function); }
  void remove_config(std::string function, std::function<void(Status)> done) override;
  void redrive(std::string function, Callback<RedriveResult> done) override;
  void when_over(Over callback) override { told_over_ = std::move(callback); }
  EventCounters counters() const override;

 private:
  void over(HeldEvent event, FlowId flow, const Ended& ended);
  void over_elsewhere(const HeldEvent& event);
  void failed(HeldEvent event, Outcome outcome);
  void postpone(HeldEvent event, Outcome outcome);
  void finish_unrun(HeldEvent event, OutcomeKind kind);
  Result<std::uint64_t> choose_version(const InvokeRequest& request) const;
  RegisteredFunction* flow_of(const Invocation& invocation) const;
  void bury(const QueuedEvent& event, Outcome outcome);
  void bury_unrun(const QueuedEvent& event, std::string why);
  void take_in(Redriven redriven);
  std::string tenant_of_function(const std::string& name) const;
  Store::Done told(const std::string& request_id) const;
  EventLimits limits(const HeldEvent& event) const { return configs_.limits(event.record.invocation.function); }
  void arm_timer();

  boost::asio::io_context& io_;
  EventQueue queue_;
  EventConfigs configs_;
  Store& store_;
  Functions& functions_;
  RequestIds& request_ids_;
  Invocations& invocations_;
  PublishedVersions* versions_ = nullptr;
  const FailureWords words_;
  const std::function<void()> written_;
  Over told_over_;
  boost::asio::steady_timer timer_;
  EventCounters counters_;  // but for those of the queue
  struct Lease {
    std::function<bool()> may_start;  // empty: always
    std::uint64_t number = 0;         // what was started under an earlier one is others' by now
  } lease_;
  struct Now {
    bool is_draining = false, is_redriving = false;
  } now_;
};

}  // namespace fairlead

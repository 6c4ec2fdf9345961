// Asynchronous invocations: on disk before they are accepted, submitted when the core has room, tried again when they fail,
// kept as dead letters in the end. EventQueue decides; the store writes; Invocations runs them.
//
//   accept ──written──> EventQueue ──submit──> Invocations ──over──> forgotten | written with its next attempt | dead letter
//
// Threads: everything on the io_context's thread.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <functional>
#include <string>
#include <vector>

#include "edge/node_service.h"
#include "node/event_queue.h"
#include "node/failure_words.h"
#include "node/functions.h"
#include "node/invocations.h"
#include "node/request_id.h"
#include "store/store.h"

namespace fairlead {

class AsyncInvocations {
 public:
  // `written` is called each time something about an invocation that is over is on disk.
  AsyncInvocations(boost::asio::io_context& io, EventQueueOptions options, Store& store, Functions& functions,
                   RequestIds& request_ids, Invocations& invocations, FailureWords words,
                   std::function<void()> written);

  // Found on disk at the start.
  void restore(std::vector<QueuedEvent> events);
  void accept(InvokeRequest request, NodeService::Callback<std::string> accepted);
  // What is ready goes to the core, as far as that has room.
  void submit();
  // No more are accepted or submitted; what waits stays on disk for the next start.
  void drain() { draining_ = true; }
  void function_removed(const std::string& name);

 private:
  void over(QueuedEvent event, const Complete& complete, const Outcome* outcome);
  void finish_unrun(QueuedEvent event, const Complete& complete);
  void expire(const QueuedEvent& event);
  void bury(const QueuedEvent& event, Outcome outcome);
  void arm_timer();

  boost::asio::io_context& io_;
  EventQueue queue_;
  Store& store_;
  Functions& functions_;
  RequestIds& request_ids_;
  Invocations& invocations_;
  const FailureWords words_;
  const std::function<void()> written_;
  boost::asio::steady_timer timer_;
  bool draining_ = false;
};

}  // namespace fairlead

// GET /fairlead/v1/events: the node's status, each period, as server-sent events. For dashboards, which would poll otherwise.
//
// A client that reads slower than events come misses some: numbers of events (`id`) are the node's, so that it sees which.
//
// Threads: the io_context's.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/units.h"
#include "edge/edge.h"
#include "edge/node_service.h"
#include "net/server_sent_events.h"
#include "net/ticker.h"

namespace fairlead {

class StatusEvents {
 public:
  static constexpr std::size_t kMostStreams = 16;
  static constexpr std::size_t kStreamBytes = 4 << 20;  // a status of some thousand functions; what a slow reader holds

  // `node` must outlive the handlers.
  StatusEvents(boost::asio::io_context& io, NodeService& node, Duration period = std::chrono::seconds(1));

  // The first event is sent at once. 429 above kMostStreams, 413 where the status is larger than kStreamBytes.
  void open(RouteCall call);
  // One event to each reader; those that have gone are forgotten.
  void send();
  std::size_t streams() const { return streams_.size(); }

 private:
  std::string next_event();
  void forget_gone();

  NodeService& node_;
  net::Ticker ticker_;  // runs while there are readers
  std::vector<net::EventWriter> streams_;
  std::uint64_t events_ = 0;
};

}  // namespace fairlead

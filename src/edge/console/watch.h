// GET /fairlead/v1/watch: what the console shows, as server-sent events `frame`, for as long as somebody watches.
//
//   node.status() ──4 times a second──> LiveView of all    ──one text──> viewers who see all
//                                       LiveView of tenant ──one text──> viewers of that tenant
//
// The first frame has everything, later ones what has changed. A viewer that has not taken its last frame gets none, and what it missed is in the
// next one it gets (LiveView). `id` is "RUN.VIEW-FRAME": who comes back with it as Last-Event-ID gets what changed since, if the view is still the same one,
// which is so for kKeptFor after its last viewer left. A comment every 15 s tells proxies that the stream lives.
//
// Bounds: kMostViewers, of which kMostOfTenants are tenants' and kMostOfTenant one tenant's, so that no tenant keeps the operator out; kViewerBytes
// for each; a stream ends after kStreamLife, or when its key has gone. Looking takes at most a twentieth of the thread: it looks less often
// where a look is dear. Without viewers there is no timer and nothing is computed.
//
// Threads: the io_context's.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "edge/console/live_view.h"
#include "edge/edge.h"
#include "edge/node_service.h"
#include "net/server_sent_events.h"
#include "net/ticker.h"

namespace fairlead {

struct WatchOptions {
  Duration period = std::chrono::milliseconds(250);
  std::function<Instant()> clock = monotonic_now;
  // Whether who came in at first would still.
  std::function<bool(const Principal&)> is_known = [](const Principal&) { return true; };
  std::string run = "0";  // another one for each run of the node
};

struct WatchBounds {
  static constexpr std::size_t kMostViewers = 32, kMostOfTenants = 24, kMostOfTenant = 4;
  static constexpr std::size_t kViewerBytes = 1 << 20;
  static constexpr Duration kStreamLife = std::chrono::hours(1);
  static constexpr Duration kQuiet = std::chrono::seconds(15), kKeptFor = std::chrono::minutes(1);
  static constexpr int kShare = 20;  // a twentieth
};

class Watch : public WatchBounds {
 public:
  // `node` outlives it.
  Watch(boost::asio::io_context& io, NodeService& node, WatchOptions options);

  // 429 where too many watch, 413 where all there is to show is larger than kViewerBytes.
  void open(RouteCall call);
  // A frame to each who is due one.
  void look();
  std::size_t viewers() const { return viewers_.size(); }
  std::size_t kept_events() const { return events_.size(); }  // kMostViewers at most

 private:
  using Audience = std::optional<std::string>;  // a tenant; empty: all

  struct Viewer {
    net::EventWriter writer;
    Principal who;
    std::uint64_t seen;  // frame
    Instant since, heard;
  };

  struct Shown {
    LiveView view;
    std::string id;  // RUN.VIEW
    Instant watched{};
  };

  Status check_room(const Principal& who) const;
  bool tick();
  void refresh();
  void leave_gone();
  Shown& shown_to(const Audience& audience);
  // The event that brings who saw `seen` up to date, the same text for all who did. Valid until the next call.
  const std::string& event_since(const Audience& audience, std::uint64_t seen);
  bool send(Viewer& viewer);

  NodeService& node_;
  const WatchOptions options_;
  net::Ticker ticker_;
  std::vector<Viewer> viewers_;
  std::map<Audience, Shown> shown_;
  std::uint64_t views_ = 0;                                           // there ever were
  std::map<std::pair<Audience, std::uint64_t>, std::string> events_;  // of this look; kMostViewers at most
  Instant next_look_{};
};

}  // namespace fairlead

// Brings functions to all nodes of a cluster that has no common store.
//
// A change is made durable where it arrives, and gets a version (function_versions.h). Then every living peer is told that something
// changed, pulls what it
// misses, and answers; the client is answered after them. A peer that was away finds by gossip that its digest is another, and pulls
// the same way.
//
// Pulled are configuration, reserved concurrency and code. Secrets, keys, event configurations, profiles and objects are not.
//
// Threads: the io_context's; packing code is done elsewhere.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>

#include "edge/node_service.h"
#include "node/peers/function_versions.h"
#include "node/peers/peers.h"

namespace fairlead {

class FunctionSync {
 public:
  // `state_dir`: where versions are kept between starts. kCorrupt: the file there is none of ours. Versions ahead of the clock are warned
  // about, and kept: what this node knew before its clock was set back is not undone by that.
  static Result<std::unique_ptr<FunctionSync>> open(NodeService& node, const std::string& state_dir,
                                                    std::string own_name);

  void connect(Peers& peers) { peers_ = &peers; }  // REQUIRES: before anything below
  // A common store brings functions to all nodes: nothing is told, asked or compared here.
  void stand_aside() { stands_aside_ = true; }
  std::uint64_t digest() const { return stands_aside_ ? 0 : versions_.digest(); }
  const FunctionVersions& versions() const { return versions_; }

  // This node changed the function itself. `zip`: the code as it came, if it did so as a zip file. `done` when every living peer has
  // it, or said why not, or
  // kPatience is over.
  static constexpr Duration kPatience = std::chrono::seconds(10);
  void changed(const std::string& function, bool is_deleted, std::function<void()> done);
  void keep_zip(const std::string& code_sha256, std::string zip);

  // Takes from the peer what it has newer. `done` once that is so, or failed; may be empty.
  void pull(NodeId peer, std::function<void()> done);

  // What others ask for.
  std::string versions_text() const { return versions_.text(); }
  struct Packed {
    std::string head;  // configuration
    std::string code;  // a zip file; empty: an image
  };
  void pack(const std::string& function, std::function<void(Result<Packed>)> done);

  struct Counters {
    std::uint64_t pulled = 0, failed = 0;
  };
  Counters counters() const { return counters_; }

 private:
  struct Pull {
    NodeId peer;
    FunctionVersions theirs;
    std::deque<std::string> names;
    std::vector<std::function<void()>> done;
    bool again = false;  // something changed while it was under way
  };

  FunctionSync(NodeService& node, std::string state_dir, std::string own_name)
      : node_(node), state_dir_(std::move(state_dir)), own_name_(std::move(own_name)) {}
  void save();
  void ask_versions(const std::shared_ptr<Pull>& pull);
  void warn_refused(NodeId peer, const TooFarAhead& refused);
  void next(const std::shared_ptr<Pull>& pull);
  bool begin(const std::shared_ptr<Pull>& pull, const std::string& name);
  void take(const std::shared_ptr<Pull>& pull, const std::string& name, Result<net::ClientResponse> answer);
  void apply(const std::string& name, const Packed& packed, std::function<void(Status)> done);
  void end(const std::shared_ptr<Pull>& pull);
  void failed(const std::string& name, const FunctionVersion& version, const Error& error);

  NodeService& node_;
  const std::string state_dir_, own_name_;
  Peers* peers_ = nullptr;
  FunctionVersions versions_;
  std::uint64_t saved_digest_ = 0;
  bool stands_aside_ = false;
  std::map<NodeId, std::shared_ptr<Pull>> pulls_;  // one at a time of each peer; shared with what is under way
  std::map<std::string, std::pair<FunctionVersion, Instant>> failures_;  // by function: not tried again for a while
  std::map<NodeId, Instant> refusals_;                                   // by peer: when it was last warned about
  std::deque<std::pair<std::string, std::shared_ptr<const std::string>>> zips_;  // by code's digest, the newest last
  std::size_t zip_bytes_ = 0;
  Counters counters_;
};

}  // namespace fairlead

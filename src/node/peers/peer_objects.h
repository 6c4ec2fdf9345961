// Objects of other nodes: whoever wants one that this node lacks asks all living peers, and takes a copy from the first that has it, a
// megabyte at a time.
//
//   fetch("x") ──find──> a: no, b: 40 MiB ──open──> b ──read 0..1 MiB, 1..2, ...──> here: create, write, seal; the same content?
//
// A peer that ends in the middle ends the copy; then the others are asked once more. A few questions and a few copies are on their way
// at a time; the others wait, with turns by tenant. An object that is being written is not waited for here: who wants it asks again.
//
// A copy ends with the object, and an hour after it was made at the latest; so does a copy of a copy.
// What comes in is what a node of the cluster says, and is as large as it said before, or it is not taken.
// Threads: the io_context's.
#pragma once

#include <boost/asio/io_context.hpp>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/lifetime.h"
#include "net/http_server.h"
#include "node/peers/peers.h"
#include "node/peers/turns.h"
#include "store/cluster_object_store.h"

namespace fairlead {

inline constexpr std::size_t kMostObjectHead = 2 << 10;  // of what one node asks another about an object

class PeerObjects final : public ObjectsElsewhere {
 public:
  static constexpr std::size_t kPartBytes = 1 << 20;
  static constexpr std::size_t kAtATime = 8;        // questions, and copies; of one tenant half as many
  static constexpr std::size_t kMostWaiting = 256;  // of one tenant; more are refused (kResourceExhausted)
  static constexpr Duration kFindPatience = std::chrono::seconds(2);
  static constexpr Duration kReadPatience = std::chrono::seconds(30);  // with one part

  // Both outlive it. From here on `store` asks it.
  PeerObjects(boost::asio::io_context& io, Peers& peers, ClusterObjectStore& store);
  ~PeerObjects() override;

  void find(const ObjectName& name, ObjectStore::Callback<ObjectInfo> done) override;
  void fetch(const ObjectName& name, Duration patience, std::function<void(Status)> done) override;
  void remove(const ObjectName& name, std::function<void(Status)> done) override;

  // What another node asks of this one. `head` is sealed by a node of the cluster.
  void serve(net::HttpExchange exchange, std::string_view head);

  struct Counters {
    std::uint64_t copies = 0, bytes = 0, failed = 0;
  };
  const Counters& counters() const { return counters_; }

 private:
  struct Search;
  struct Copy;
  using SearchPtr = std::shared_ptr<Search>;
  using CopyPtr = std::shared_ptr<Copy>;

  // Calls `work` from the event loop, now or when others have ended; `refused`, where too many wait.
  void in_turn(Turns& turns, const std::string& tenant, std::function<void()> work,
               const std::function<void(Error)>& refused);
  void ask_all(const SearchPtr& search, std::string head);
  void begin(const CopyPtr& copy);
  void open_there(const CopyPtr& copy);
  bool is_still_here(const Copy& copy) const;
  void write_here(const CopyPtr& copy, const ObjectInfo& info);
  void next_part(const CopyPtr& copy);
  void take_part(const CopyPtr& copy, Result<std::string> part);
  void seal(const CopyPtr& copy);
  void lost(const CopyPtr& copy, const Error& error);
  void end(const CopyPtr& copy, const Status& status);
  void ask(NodeId node, std::string head, Duration patience, std::function<void(Result<std::string>)> done);

  boost::asio::io_context& io_;
  Peers& peers_;
  ClusterObjectStore& store_;
  Turns questions_{kAtATime, kMostWaiting}, copies_{kAtATime, kMostWaiting};
  Counters counters_;
  Lifetime life_;  // the store may call back later
};

}  // namespace fairlead

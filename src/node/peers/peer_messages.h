// What nodes say to each other, as bytes (fields.h) and as values. Reading checks bounds and believes nothing; who said it is the
// seal's business
// (peer_seal.h).
//
// Thread-safe: functions of their arguments.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "decide/cluster/cluster_view.h"
#include "edge/node_service.h"
#include "model/invocation.h"
#include "model/principal.h"

namespace fairlead {

inline constexpr std::size_t kMostWordBytes = 32 << 10;  // a node's word about itself
inline constexpr std::size_t kMostCallHead = 128 << 10;  // a call without its payload
inline constexpr std::size_t kMostVersionsBytes = 4 << 20;

// A node about itself, and what it keeps: each gossip period.
struct PeerWord {
  NodeWord node;
  std::uint64_t functions = 0;          // digest of the functions it knows (function_versions.h)
  std::uint64_t known_incarnation = 0;  // of whom this is an answer to; 0: of nobody
  bool thinks_dead = false;             // likewise: take a higher incarnation
};
std::string write_word(const PeerWord& word);
Result<PeerWord> read_word(std::string_view text);  // kInvalidArgument, kTooLarge or kCorrupt, with the reason

// A call on its way to its home. The payload follows its head.
struct PeerCall {
  InvokeRequest request;  // without its payload; its deadline is what is left of it, in ms
  bool is_event = false;
  bool wants_parts = false;  // its answer is sent as it is made, where the function does so (peer_stream.h)
  std::string tenant, role;  // of whom the gateway let in
  unsigned hops = 1;
  std::uint64_t known_number = 0;  // of the receiver's last word that the sender had
};
std::string write_call(const PeerCall& call, std::int64_t now_ms);
Result<PeerCall> read_call(std::string_view head, std::int64_t now_ms);

// What came of it.
std::string write_outcome(const Outcome& outcome);  // without its payload
Result<Outcome> read_outcome(std::string_view head);
std::string write_error(const Error& error);
Error read_error(std::string_view text);  // kCorrupt itself where it is none

}  // namespace fairlead

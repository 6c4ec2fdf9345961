// The calls of one connection: those that arrive, those that wait for their turn, those whose clients have gone.
//
//   open ──> streams ──whole──> arrived ──take_arrived──> handler
//                └──closed while the handler has it──> cancelled ──take_cancelled──> its handler is told
//
// Threads: the io_context's.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "base/units.h"
#include "net/grpc/grpc_stream.h"

namespace fairlead::net {

class GrpcCalls {
 public:
  using Stream = std::shared_ptr<GrpcStream>;

  explicit GrpcCalls(Instant now) : idle_since_(now) {}

  void open(Stream stream) { streams_[stream->id()] = std::move(stream); }
  GrpcStream* find(int id) const;
  void end_input(int id);  // REQUIRES: find(id)
  // No longer a call of this connection. True: its handler is to be told, and none was before it.
  bool close(int id, Instant now);
  void forget_arrived() { arrived_.clear(); }

  bool empty() const { return streams_.empty(); }
  bool has_arrived() const { return !arrived_.empty(); }
  // The next one that the handler is to have. REQUIRES: has_arrived().
  Stream take_arrived();
  std::vector<Stream> take_cancelled() { return std::exchange(cancelled_, {}); }
  std::vector<Stream> take_all();   // closes them
  std::vector<Stream> all() const;  // in the order of their numbers
  // Since when there is none; nothing: there is one.
  std::optional<Instant> idle_since() const { return empty() ? std::optional(idle_since_) : std::nullopt; }

 private:
  std::map<int, Stream> streams_;
  std::deque<Stream> arrived_;
  std::vector<Stream> cancelled_;
  Instant idle_since_;
};

}  // namespace fairlead::net

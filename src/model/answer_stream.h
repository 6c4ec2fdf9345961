// Where the parts of one answer go while its function still makes them: from the runner that has them to the connection that sends them on.
//
//   edge ──InvokeRequest{stream}──> node ──DeliverRequest{stream}──> runner: begin, part, part, ... ──> edge ──> client
//
// A runner that has its answer whole, as kernel tasks have, does not touch the stream: the answer is in the Outcome then.
//
// Threads: the node's. Errors: none; a client that has gone takes no more, and is_gone() says so.
#pragma once

#include <cstddef>
#include <functional>
#include <string_view>

#include "model/invocation.h"

namespace fairlead {

// Of one answer. As many as Lambda's, so that a function cannot keep a connection for ever by sending.
inline constexpr std::size_t kMaxStreamedBytes = std::size_t{200} << 20;

struct AnswerHead {
  std::string_view request_id;    // of the invocation
  std::string_view content_type;  // as the function says; empty: it does not
  Delivery delivery = {};
  std::uint64_t version = 0;  // as Outcome has it
};

class AnswerStream {
 public:
  virtual ~AnswerStream() = default;

  // The function has begun its answer. Once, before its parts.
  virtual void begin(const AnswerHead& head) = 0;
  // The next bytes, all of which are taken. Should wait while is_full().
  virtual void part(std::string_view bytes) = 0;
  virtual bool is_full() const = 0;  // what was taken waits for the client
  virtual bool is_gone() const = 0;  // nobody reads any more
  // Called, never from inside a call of this class, when is_full() or is_gone() may have changed. Null: nobody listens.
  virtual void on_change(std::function<void()> callback) = 0;
};

}  // namespace fairlead

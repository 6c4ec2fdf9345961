// One call of a function: what its caller gave, in one value from the edge that took it to the runner that delivers it. Who adds
// a field adds it here and nowhere else: the node, its store of asynchronous calls and both kinds of runner pass the value on.
//
//   edge ──Invocation──> node ──(asynchronous: on disk and back)──> runner ──> function
//
// A plain value. Owns its bytes; moved, not copied, on the way of a synchronous call.
#pragma once

#include <string>

namespace fairlead {

struct Invocation {
  std::string request_id;      // UUID, given by the node when it accepts the call
  std::string function;        // bare name
  std::string payload;         // as the caller sent it
  std::string client_context;  // decoded; empty: none
  std::string trace_id;        // as the caller's edge has it; empty: none
};

}  // namespace fairlead

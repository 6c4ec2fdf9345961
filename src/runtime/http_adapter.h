// Lets a program that only knows HTTP take invocations: it runs beside the program, takes each invocation from the
// Runtime API, posts its payload to http://127.0.0.1:PORT/ and passes the body of the answer on. To the rest of the node
// the instance is one like all others.
//
// Ready is when the program accepts a connection. Should the program itself ask the Runtime API for its first invocation
// before that, it is a Lambda runtime and needs no adapter, which then ends: who is first decides.
//
// An answer of 400 or more is the function's error, of the type HTTP.<status>; one that does not come is HTTP.NoAnswer.
#pragma once

#include <cstdint>
#include <string>

#include "base/units.h"

namespace fairlead {

struct HttpAdapterOptions {
  std::uint16_t port = 0;
  std::string runtime_api = "127.0.0.1:9001";
};

// Blocks for the instance's life. 0: the program asks for its invocations itself; 1: the Runtime API has gone.
// REQUIRES: a process of its own, with one thread.
int run_http_adapter(const HttpAdapterOptions& options);

}  // namespace fairlead

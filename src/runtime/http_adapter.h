// Lets a program that only knows HTTP take invocations: it runs beside the program, takes each invocation from the
// Runtime API, posts its payload to http://127.0.0.1:PORT/ and passes the body of the answer on. To the rest of the node
// the instance is one like all others.
//
// Where the caller asked over HTTP (Invocation::http) the program is asked as the caller asked: with that method, path, query and
// headers; its status and headers are part of its answer, and the answer goes on while the program makes it. Then a 404 is an answer.
//
//   GET /items?x=1, Accept: text/html  ──> the same to the program
//   404, Content-Type: text/html, <p>  ──> response in streaming mode: {"statusCode": 404, "headers": {...}} 8 NUL bytes <p>
//
// Ready is when the program accepts a connection, and, where there is a path for its health, says 200 there. Should the program itself
// ask the Runtime API for its first invocation before that, it is a Lambda runtime and needs no adapter, which then ends: who is first
// decides.
//
// Without such a part an answer of 400 or more is the function's error, of the type HTTP.<status>; one that does not come is HTTP.NoAnswer.
#pragma once

#include <cstdint>
#include <string>

#include "base/units.h"

namespace fairlead {

struct HttpAdapterOptions {
  std::uint16_t port = 0;
  std::string health = {};  // path; empty: accepting a connection is enough
  std::string runtime_api = "127.0.0.1:9001";
};

// Blocks for the instance's life. 0: the program asks for its invocations itself; 1: the Runtime API has gone.
// REQUIRES: a process of its own, with one thread.
int run_http_adapter(const HttpAdapterOptions& options);

}  // namespace fairlead

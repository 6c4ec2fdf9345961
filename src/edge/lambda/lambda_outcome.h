// Outcomes in AWS Lambda's words: what an Invoke answers, and what is said later of those that failed.
//
//   crashed, "exit status 3"  ->  {"errorType": "Runtime.ExitError", "errorMessage": "RequestId: ... Error: Runtime exited: exit status 3"}
//
// Source: reference apis.md 2.1. Threads: any.
#pragma once

#include <string>

#include "model/invocation.h"
#include "net/http_server.h"

namespace fairlead {

// What the function said, or the platform's error document of a failure.
std::string lambda_payload(Outcome outcome);
// Of one that failed, for people: "ValueError: no such model". Cut at 1,000 bytes; may be empty, where a function says nothing.
std::string lambda_failure_text(const Outcome& outcome);
// The last message of a streamed answer: {}, or ErrorCode and ErrorDetails; LogResult where it was asked for.
std::string invoke_complete(const Outcome& outcome);
// The answer to an Invoke.
net::HttpResponse lambda_response(Outcome outcome);

}  // namespace fairlead

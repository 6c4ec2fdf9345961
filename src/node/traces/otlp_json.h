// Requests as OpenTelemetry's spans, in the JSON of its protocol: ids are hexadecimal there, numbers of 64 bits are texts.
//
//   request ─┬─ queue    arrival to the choice of an instance
//            ├─ start    the choice to delivery; a cold one's attribute says how long its instance took
//            ├─ memory   bringing its instance's memory back to the device; beside the others, where it was away
//            └─ run      delivery to the answer, with the GPU time that was charged; the function's own spans are its children
//
// A call that was given to another node is one span, `forward`; the other node's request is its child.
//
// Source: opentelemetry-proto 1.x, collector/trace/v1; "OTLP/HTTP, JSON Protobuf Encoding".
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "base/rng.h"
#include "node/traces/traced_request.h"

namespace fairlead {

using ResourceAttributes = std::vector<std::pair<std::string, std::string>>;

// The body of one export request. `rng` gives the ids that nobody needs to know beforehand.
std::string otlp_json(const ResourceAttributes& resource, const std::vector<TracedRequest>& requests, Rng& rng);

}  // namespace fairlead

// API keys over HTTP, for the operator alone: POST, GET /fairlead/v1/keys, DELETE /fairlead/v1/keys/{key}, and
// POST /fairlead/v1/keys/{key}/rotate. A secret is in the answer that made it and nowhere else.
#pragma once

#include "edge/edge.h"
#include "edge/run_elsewhere.h"
#include "identity/key_desk.h"

namespace fairlead {

// `desk` must outlive the handlers. `publish`: for keys of all nodes; it is called elsewhere.
Edge key_edge(identity::KeyDesk& desk, RunElsewhere elsewhere, PublishDocuments publish);

}  // namespace fairlead

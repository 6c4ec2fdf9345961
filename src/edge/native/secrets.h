// Secrets over HTTP: PUT and DELETE /fairlead/v1/secrets/{name}, GET /fairlead/v1/secrets. The body of a PUT is the secret; no answer
// ever has one.
#pragma once

#include <cstdint>
#include <functional>

#include "edge/edge.h"
#include "edge/run_elsewhere.h"
#include "identity/secret_vault.h"

namespace fairlead {

// `vault` must outlive the handlers. A change waits for the disk, or for the store of all nodes, elsewhere.
Edge secret_edge(identity::SecretVault& vault, RunElsewhere elsewhere, std::function<std::int64_t()> wall_clock_ms);

}  // namespace fairlead

// /system/secrets: OpenFaaS's secrets are the node's (identity/secret_vault.h), those of the namespace's tenant. Values go in and never
// come out.
//
// Threads: the io_context's; the vault writes its file on another one.
#pragma once

#include <cstdint>
#include <functional>

#include "edge/edge.h"
#include "edge/run_elsewhere.h"
#include "identity/secret_vault.h"

namespace fairlead::openfaas {

void add_secret_routes(Routes& routes, RunElsewhere elsewhere, identity::SecretVault& vault,
                       std::function<std::int64_t()> wall_clock_ms);

}  // namespace fairlead::openfaas

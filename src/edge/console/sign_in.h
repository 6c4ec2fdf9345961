// A browser's session: POST /console/session with an API key (Authorization) answers with a cookie, GET says whose it is, POST
// /console/session/end takes it away (edge/session_cookie.h).
//
// The session is a text that the node can check and need not keep (Keyring::open_session). It ends after kSessionLife, and at once when its key
// is revoked or expires.
#pragma once

#include <cstdint>
#include <functional>

#include "edge/edge.h"
#include "identity/keyring.h"

namespace fairlead {

// `keyring` outlives the handlers.
void add_sign_in_routes(Routes& routes, const identity::Keyring& keyring, std::function<std::int64_t()> wall_clock_ms);

}  // namespace fairlead

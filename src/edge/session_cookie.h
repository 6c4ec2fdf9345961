// The console's session cookie: how it is called, found and written, and which requests it may come with.
//
// A cookie comes along with whatever a browser sends to this host, also where a page of others made it send that. So it is no credential by
// itself: the header X-Fairlead-Console must be there, which only scripts of this origin can add (a script of another origin would need
// the node's permission first, CORS, which the node never gives). Cookies do not know ports: the name has the one that the client
// used, so that two nodes of one machine do not sign each other's viewers out.
//
// Pure. Threads: any.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "base/units.h"
#include "net/http_server.h"

namespace fairlead {

inline constexpr std::string_view kSessionCookie = "fairlead_console";  // with "_PORT", where the client names one
inline constexpr const char* kConsoleHeader = "X-Fairlead-Console";
inline constexpr Duration kSessionLife = std::chrono::hours(12);

// "" without kConsoleHeader, or without such a cookie.
std::string_view session_of(const net::HttpRequest& request);

// kForbidden: a cookie does not do for this method, or it was another origin's page that had this sent.
Status check_sent_by_console(const net::HttpRequest& request);

// Set-Cookie. An empty session takes the cookie away. `is_secure`: the browser speaks TLS, to the node or to a proxy before it.
std::string session_cookie(const net::HttpRequest& request, std::string_view session, bool is_secure);

}  // namespace fairlead

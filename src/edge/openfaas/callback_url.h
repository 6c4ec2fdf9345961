// Where a callback of an asynchronous call goes: X-Callback-Url.
//
//   https://hooks.example.com/done?x=1   ->   hooks.example.com, port 443, TLS, "/done?x=1"
//
// A URL comes from whoever may call a function, and the node sends to it. So the rules of image registries (model/registry_rules.h) hold
// for it too: by default only TLS at port 443, to hosts all of whose addresses are global; an operator lists others.
//
// Plain values.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "model/registry_rules.h"

namespace fairlead::openfaas {

inline constexpr std::size_t kMostCallbackUrlBytes = 2048;

struct CallbackUrl {
  HostPort host;
  bool speaks_tls = false;
  std::string target = "/";  // path and query

  std::string authority() const;  // "host:8080", "[::1]:8080"
  bool operator==(const CallbackUrl&) const = default;
};

// kInvalidArgument: it is none, or has a user, a fragment, or bytes that no URL has. kForbidden: the rules do not allow it, whatever its
// addresses are; the error says what an operator would have to say.
Result<CallbackUrl> parse_callback_url(std::string_view text, const RegistryRules& rules);

}  // namespace fairlead::openfaas

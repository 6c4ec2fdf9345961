#include "node/common_key.h"

#include "identity/cluster_keys.h"
#include "node/peers/peer_seal.h"

namespace fairlead {

Result<std::string> common_key(const ServeOptions& options, const char* purpose) {
  if (options.store.empty() || options.cluster_key.empty() || options.open) return std::string();
  const auto key = read_cluster_key(options.cluster_key);
  if (!key) return fail(key.error());
  return identity::derive_from_cluster_key(*key, purpose);
}

}  // namespace fairlead

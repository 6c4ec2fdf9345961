#include "node/keys_and_secrets.h"

#include <memory>
#include <utility>

#include "base/check.h"
#include "base/log.h"
#include "identity/cluster_keys.h"
#include "identity/key_file.h"

namespace fairlead {
namespace {

// Of what comes from other nodes, among those who take turns: no tenant.
constexpr const char* kAllTenants = "(all)";

}  // namespace

RunElsewhere KeysAndSecrets::elsewhere() {
  return [this](const std::string& tenant, Bytes bytes, TenantWorker::Job job) {
    return worker_.run(tenant, bytes, std::move(job));
  };
}

void KeysAndSecrets::adopt(SharedDocuments documents) {
  documents.is_anew = documents.is_anew || (unread_ && unread_->is_anew);
  unread_ = std::move(documents);
  if (!is_reading_) read_next();
}

void KeysAndSecrets::read_next() {
  is_reading_ = unread_.has_value();
  if (!is_reading_) return;
  const auto all = std::make_shared<const SharedDocuments>(*std::exchange(unread_, std::nullopt));
  const Status accepted = worker_.run(kAllTenants, Bytes(0), [this, all] { return read(*all); });
  FL_CHECK(accepted.has_value(), "{}", accepted.error().message);  // the only job of this name, and of no bytes
}

std::function<void()> KeysAndSecrets::read(const SharedDocuments& all) {
  secrets_.adopt(all);
  const auto keys = std::make_shared<identity::ClusterKeys>(identity::read_cluster_keys(all, options_.cluster));
  if (keys->kept != kept_) {
    if (Status saved = identity::KeyFile(options_.state_dir).save_cluster(keys->kept); !saved) {
      spdlog::warn("a start without the store would know the keys of before: {}", saved.error().message);
    }
    kept_ = keys->kept;
  }
  return [this, keys] {
    if (keys_ != nullptr) keys_->adopt(std::move(*keys));
    read_next();
  };
}

}  // namespace fairlead

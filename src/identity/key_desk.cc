#include "identity/key_desk.h"

#include "base/log.h"

namespace fairlead::identity {

// What became of these keys in `after`.
KeyDesk::Change KeyDesk::planned(const Keyring& after, std::vector<std::string> ids, std::string removed) const {
  Change change;
  for (const std::string& id : ids) {
    const ApiKey* const key = after.find(id);
    if (key == nullptr) continue;
    change.put.push_back(*key);
    if (is_of_cluster(id)) change.documents.all.push_back({id, seal_key(*key, cluster_)});
  }
  if (is_of_cluster(removed)) change.documents.all.push_back({removed, std::nullopt});
  change.documents.kind = kKeyDocuments;
  change.removed = std::move(removed);
  return change;
}

Result<KeyDesk::Change> KeyDesk::plan_issue(const KeyRequest& request) const {
  Keyring after = keyring_;
  auto issued = after.issue(fresh_key_id(cluster_.empty() ? kNodeKeyPrefix : kClusterKeyPrefix), request, clock_());
  if (!issued) return fail(issued.error());
  Change change = planned(after, {issued->key.id}, "");
  change.issued = *std::move(issued);
  return change;
}

// The new key is where the old one is: at this node, or at all.
Result<KeyDesk::Change> KeyDesk::plan_rotate(const std::string& id, std::int64_t grace_ms) const {
  Keyring after = keyring_;
  const std::string new_id = fresh_key_id(is_of_cluster(id) ? kClusterKeyPrefix : kNodeKeyPrefix);
  auto issued = after.rotate(id, new_id, grace_ms, clock_());
  if (!issued) return fail(issued.error());
  Change change = planned(after, {id, new_id}, "");
  change.documents.needs = is_of_cluster(id) ? id : "";  // it may be revoked at another node meanwhile
  change.issued = *std::move(issued);
  return change;
}

Result<KeyDesk::Change> KeyDesk::plan_revoke(const std::string& id) const {
  Keyring after = keyring_;
  if (Status revoked = after.revoke(id); !revoked) return fail(revoked.error());
  return planned(after, {}, id);
}

Status KeyDesk::carry_out(const Change& change, std::int64_t revision) {
  // What was read since has the change, and what others made of it: a key that was revoked at once would come back.
  if (change.is_of_cluster() && revision <= revision_) return {};
  const Keyring before = keyring_;
  for (const ApiKey& key : change.put) keyring_.put(key);
  if (!change.removed.empty() && keyring_.find(change.removed) != nullptr) {
    if (Status revoked = keyring_.revoke(change.removed); !revoked) return revoked;
  }
  if (change.is_of_cluster()) {
    revision_ = revision;
    return {};
  }
  Status saved = file_.save(keyring_);
  if (!saved) keyring_ = before;
  return saved;
}

// What was read before a change that this node has made since is older than what it has.
void KeyDesk::adopt(ClusterKeys all) {
  if (cluster_.empty() || (all.revision < revision_ && !all.is_anew)) return;
  revision_ = all.revision;
  keyring_.replace_cluster(std::move(all.keys));
  if (all.left_out == 0) return;
  spdlog::error(
      "{} keys of the cluster are not believed: nodes with another --cluster-key have made them, or somebody changed "
      "them in the store",
      all.left_out);
}

}  // namespace fairlead::identity

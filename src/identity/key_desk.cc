#include "identity/key_desk.h"

namespace fairlead::identity {

Result<IssuedKey> KeyDesk::issue(const KeyRequest& request) {
  const Keyring before = keyring_;
  auto issued = keyring_.issue(fresh_key_id(), request, clock_());
  if (!issued) return issued;
  if (Status saved = save_or_restore(before); !saved) return fail(saved.error());
  return issued;
}

Result<IssuedKey> KeyDesk::rotate(const std::string& id, std::int64_t grace_ms) {
  const Keyring before = keyring_;
  auto issued = keyring_.rotate(id, fresh_key_id(), grace_ms, clock_());
  if (!issued) return issued;
  if (Status saved = save_or_restore(before); !saved) return fail(saved.error());
  return issued;
}

Status KeyDesk::revoke(const std::string& id) {
  const Keyring before = keyring_;
  if (Status revoked = keyring_.revoke(id); !revoked) return revoked;
  return save_or_restore(before);
}

Status KeyDesk::save_or_restore(const Keyring& before) {
  Status saved = file_.save(keyring_);
  if (!saved) keyring_ = before;
  return saved;
}

}  // namespace fairlead::identity

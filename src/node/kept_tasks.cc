#include "node/kept_tasks.h"

#include <sodium.h>

#include "base/check.h"

namespace fairlead {
namespace {

// Each text with its length before it, so that no two lists of texts give the same bytes.
class Digest {
 public:
  Digest() { crypto_hash_sha256_init(&state_); }

  void add(std::string_view text) {
    add_number(text.size());
    crypto_hash_sha256_update(&state_, reinterpret_cast<const unsigned char*>(text.data()), text.size());
  }
  void add_number(std::uint64_t number) {
    unsigned char bytes[sizeof number];
    for (unsigned char& byte : bytes) {
      byte = static_cast<unsigned char>(number);
      number >>= 8;
    }
    crypto_hash_sha256_update(&state_, bytes, sizeof bytes);
  }
  std::string hexadecimal() {
    unsigned char raw[crypto_hash_sha256_BYTES];
    crypto_hash_sha256_final(&state_, raw);
    std::string text;
    for (const unsigned char byte : raw) text += fmt::format("{:02x}", byte);
    return text;
  }

 private:
  crypto_hash_sha256_state state_;
};

}  // namespace

bool KeptTasks::use(const std::string& name) {
  const auto found = by_name_.find(name);
  if (found == by_name_.end()) return false;
  by_use_.splice(by_use_.end(), by_use_, found->second);
  return true;
}

bool KeptTasks::fits(std::size_t tasks, const Size& size) const {
  return tasks <= limits_.tasks && size.files <= limits_.files && size.bytes <= limits_.bytes;
}

std::optional<std::vector<std::string>> KeptTasks::to_drop(
    Size size, const std::function<bool(const std::string&)>& in_use) const {
  std::size_t tasks = by_use_.size() + 1;
  Size with{total_.files + size.files, total_.bytes + size.bytes};
  std::vector<std::string> names;
  for (auto kept = by_use_.begin(); kept != by_use_.end() && !fits(tasks, with); ++kept) {
    if (in_use(kept->name)) continue;
    names.push_back(kept->name);
    --tasks;
    with = {with.files - kept->size.files, with.bytes - kept->size.bytes};
  }
  if (!fits(tasks, with)) return std::nullopt;
  return names;
}

void KeptTasks::add(const std::string& name, Size size) {
  const auto place = by_use_.insert(by_use_.end(), {name, size});
  FL_CHECK(by_name_.emplace(name, place).second, "{} is kept already", name);
  total_ = {total_.files + size.files, total_.bytes + size.bytes};
}

void KeptTasks::remove(const std::string& name) {
  const auto found = by_name_.find(name);
  FL_CHECK(found != by_name_.end(), "{} is not kept", name);
  const Size size = found->second->size;
  total_ = {total_.files - size.files, total_.bytes - size.bytes};
  by_use_.erase(found->second);
  by_name_.erase(found);
}

KeptTasks::Size size_of(const KernelTaskRequest& request) {
  KeptTasks::Size size{request.files.size(), Bytes(std::ssize(request.task))};
  for (const KernelTaskRequest::File& file : request.files) size.bytes += Bytes(std::ssize(file.bytes));
  return size;
}

std::string requested_name(const std::string& tenant, const KernelTaskRequest& request) {
  Digest digest;
  digest.add(tenant);
  digest.add(request.task);
  digest.add_number(request.timeout_seconds);
  digest.add_number(request.files.size());
  for (const KernelTaskRequest::File& file : request.files) {
    digest.add(file.name);
    digest.add(file.bytes);
  }
  return "request:" + digest.hexadecimal();
}

}  // namespace fairlead

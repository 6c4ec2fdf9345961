#include "node/kept_tasks.h"

#include "base/check.h"
#include "base/digest.h"

namespace fairlead {
namespace {

// Each text with its length before it, so that no two lists of texts give the same bytes.
class Listing {
 public:
  void add(std::string_view text) {
    add_number(text.size());
    digest_.add(text);
  }
  void add_number(std::uint64_t number) {
    std::string bytes;
    for (std::size_t i = 0; i < sizeof number; ++i, number >>= 8) bytes += static_cast<char>(number & 0xff);
    digest_.add(bytes);
  }
  std::string hexadecimal() { return to_hex(as_text(digest_.finish())); }

 private:
  Sha256 digest_;
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
  Listing digest;
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

#include "softgpu/ptx/text/scopes.h"

#include <charconv>

namespace softgpu::ptx {

void Scopes::clear() {
  locals_.clear();
  shadowed_.clear();
  open_.clear();
  parents_.clear();
}

bool Scopes::open() {
  if (open_.size() >= kDeepest) return false;
  const int around = open_.empty() ? -1 : open_.back().id;
  open_.push_back({static_cast<int>(parents_.size()), shadowed_.size()});
  parents_.push_back(around);
  return true;
}

void Scopes::close() {
  while (shadowed_.size() > open_.back().mark) {
    const Shadowed& last = shadowed_.back();
    if (last.existed) {
      locals_[last.name] = last.before;
    } else {
      locals_.erase(last.name);
    }
    shadowed_.pop_back();
  }
  open_.pop_back();
}

void Scopes::declare(std::string_view name, LocalName local) {
  local.serial = ++last_serial_;
  const auto [entry, inserted] = locals_.try_emplace(name, local);
  shadowed_.push_back({name, !inserted, inserted ? LocalName{} : entry->second});
  entry->second = local;
}

const LocalName* Scopes::find(std::string_view name) const {
  const auto entry = locals_.find(name);
  return entry == locals_.end() ? nullptr : &entry->second;
}

// The family that `name` is member `number` of: of %r12 the thirteenth of %r<20>, or the third of %r1<5>.
const LocalName* Scopes::find_family(std::string_view name, int& number) const {
  const std::size_t digits = name.find_last_not_of("0123456789") + 1;
  for (std::size_t length = digits; length < name.size(); ++length) {
    if (name[length] == '0' && length + 1 < name.size()) continue;  // %r01 is nobody's member
    const LocalName* family = find(name.substr(0, length));
    const auto [end, error] = std::from_chars(name.data() + length, name.data() + name.size(), number);
    if (family == nullptr || family->kind != LocalName::Kind::kFamily || error != std::errc{}) continue;
    if (number < family->count) return family;
  }
  return nullptr;
}

bool Scopes::find_register(std::string_view name, int& index) const {
  const LocalName* local = find(name);
  int number = 0;
  const LocalName* family = find_family(name, number);
  if (family != nullptr && (local == nullptr || family->serial > local->serial)) {
    index = family->index + number;
    return true;
  }
  if (local == nullptr || local->kind != LocalName::Kind::kRegister) return false;
  index = local->index;
  return true;
}

}  // namespace softgpu::ptx

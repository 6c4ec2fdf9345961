// %r7 is declared as itself or, in the same or an outer scope, as one of %r<8>. A stem may itself end in digits, so that each way
// to cut the name is tried: %a12 is the last of %a1<3>, and of %a<13>.
#include "gpu/fence/scopes.h"

#include <charconv>
#include <iterator>
#include <utility>

namespace fairlead::fence {
namespace {

constexpr std::size_t kMostDigits = 7;  // of a register's number: there are 2^20 at most

}  // namespace

bool Scopes::declare_registers(std::string_view name, unsigned bits, std::uint64_t count) {
  return scopes_.back().emplace(name, Local{.bits = bits, .count = count, .ids = {}}).second;
}

void Scopes::declare_variable(std::string_view name, int index) {
  scopes_.back()[name] = Local{.variable = index, .ids = {}};
}

// The last that fits. %r007 is a name of its own, no member of %r<8>.
Scopes::Scope::iterator Scopes::range_of(Scope& scope, std::string_view name) {
  auto found = scope.end();
  const std::size_t stem = name.find_last_not_of("0123456789") + 1;
  const std::string_view digits = name.substr(stem);
  const bool is_numbered = !digits.empty() && (digits.size() == 1 || digits[0] != '0') && digits.size() <= kMostDigits;
  for (std::size_t cut = stem; cut < name.size() && is_numbered; ++cut) {
    const auto range = scope.find(name.substr(0, cut));
    if (range == scope.end() || range->second.count == 0) continue;
    std::uint64_t index = 0;
    const std::string_view rest = name.substr(cut);
    if (rest.size() > 1 && rest[0] == '0') continue;
    std::from_chars(rest.data(), rest.data() + rest.size(), index);
    if (index < range->second.count) found = range;
  }
  return found;
}

std::optional<int> Scopes::made(Local& local, std::string_view name, bool is_nested) {
  const auto [entry, is_new] = local.ids.try_emplace(name, static_cast<int>(function_.registers.size()));
  if (is_new) function_.registers.push_back({name, local.bits, is_nested});
  return entry->second;
}

std::optional<int> Scopes::register_of(std::string_view name) {
  for (auto scope = scopes_.rbegin(); scope != scopes_.rend(); ++scope) {
    auto found = scope->find(name);
    if (found != scope->end() && found->second.variable >= 0) return std::nullopt;
    if (found == scope->end() || found->second.count > 0) found = range_of(*scope, name);
    if (found != scope->end()) return made(found->second, name, std::next(scope) != scopes_.rend());
  }
  return std::nullopt;
}

void Scopes::resolve(Operand& out) {
  if (const auto id = register_of(out.name)) {
    out.register_id = *id;
    return;
  }
  for (auto scope = scopes_.rbegin(); scope != scopes_.rend(); ++scope) {
    const auto found = scope->find(out.name);
    if (found != scope->end() && found->second.variable >= 0) {
      out.variable = found->second.variable;
      return;
    }
  }
}

}  // namespace fairlead::fence

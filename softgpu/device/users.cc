#include "softgpu/device/users.h"

#include <algorithm>

namespace softgpu {
namespace {

constexpr std::uint64_t kWindowNs = 500'000'000;

}  // namespace

std::vector<Owner> Users::list() const {
  std::vector<Owner> users;
  for (const User& user : control_.users) {
    const std::uint32_t word = user.owner.load();
    if (word == 0) continue;
    const Owner owner = Owner::unpack(word);
    if (owner.slot < kMaxClients && clients_.alive(owner)) users.push_back(owner);
  }
  return users;
}

bool Users::others(Owner self) const {
  const std::vector<Owner> users = list();
  return std::any_of(users.begin(), users.end(), [&](Owner user) { return user != self; });
}

void Users::computed(Owner owner, std::uint64_t begin_ns, std::uint64_t end_ns) {
  if (begin_ns == 0 || begin_ns >= end_ns) return;
  User& user = control_.users[owner.slot];
  const std::uint64_t window = end_ns / kWindowNs;
  const std::uint64_t start = window * kWindowNs;
  const std::uint64_t known = user.window.load();
  const std::uint64_t here = end_ns - std::max(begin_ns, start);
  std::uint64_t before = 0;
  if (begin_ns < start) before = start - std::max(begin_ns, start - kWindowNs);
  if (known == window) {
    user.busy_ns.store(user.busy_ns.load() + here);
    user.busy_before_ns.store(std::min(kWindowNs, user.busy_before_ns.load() + before));
    return;
  }
  if (known + 1 == window) before += user.busy_ns.load();
  user.busy_before_ns.store(std::min(kWindowNs, before));
  user.busy_ns.store(here);
  user.window.store(window);
}

double Users::busy(Owner owner, std::uint64_t now_ns) const {
  const User& user = control_.users[owner.slot];
  const std::uint64_t window = now_ns / kWindowNs;
  const std::uint64_t known = user.window.load();
  const std::uint64_t current = known == window ? user.busy_ns.load() : 0;
  std::uint64_t before = 0;
  if (known == window) before = user.busy_before_ns.load();
  if (known + 1 == window) before = user.busy_ns.load();
  const double left = 1.0 - static_cast<double>(now_ns % kWindowNs) / kWindowNs;
  return std::min(1.0, (static_cast<double>(current) + static_cast<double>(before) * left) / kWindowNs);
}

}  // namespace softgpu

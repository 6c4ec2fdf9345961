#include "softgpu/device/users.h"

#include <algorithm>

namespace softgpu {
namespace {

constexpr std::uint64_t kWindowNs = 500'000'000;

// The parts of a time that ends now which lie in the current window and in the one before.
struct Part {
  std::uint64_t current = 0;
  std::uint64_t before = 0;
};
Part part_of(std::uint64_t since_ns, std::uint64_t now_ns) {
  if (since_ns == 0 || since_ns >= now_ns) return {};
  const std::uint64_t start = now_ns / kWindowNs * kWindowNs;
  const std::uint64_t before = since_ns < start ? start - std::max(since_ns, start - kWindowNs) : 0;
  return {now_ns - std::max(since_ns, start), before};
}

}  // namespace

// What the slot's last process left does not count.
void Users::add(Owner owner) {
  User& user = control_.users[owner.slot];
  user.owner.store(0);
  for (auto* word : {&user.since_ns, &user.window, &user.busy_ns, &user.busy_before_ns}) word->store(0);
  user.owner.store(owner.pack());
}

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

void Users::end(Owner owner, std::uint64_t now_ns) {
  User& user = control_.users[owner.slot];
  const Part part = part_of(user.since_ns.exchange(0), now_ns);
  const std::uint64_t window = now_ns / kWindowNs;
  const std::uint64_t known = user.window.load();
  std::uint64_t before = 0;
  if (known == window) before = user.busy_before_ns.load();
  if (known + 1 == window) before = user.busy_ns.load();
  user.busy_before_ns.store(std::min(kWindowNs, before + part.before));
  user.busy_ns.store((known == window ? user.busy_ns.load() : 0) + part.current);
  user.window.store(window);
}

double Users::busy(Owner owner, std::uint64_t now_ns) const {
  const User& user = control_.users[owner.slot];
  const Part running = part_of(user.since_ns.load(), now_ns);
  const std::uint64_t window = now_ns / kWindowNs;
  const std::uint64_t known = user.window.load();
  const std::uint64_t current = running.current + (known == window ? user.busy_ns.load() : 0);
  std::uint64_t before = running.before;
  if (known == window) before += user.busy_before_ns.load();
  if (known + 1 == window) before += user.busy_ns.load();
  const double left = 1.0 - static_cast<double>(now_ns % kWindowNs) / kWindowNs;
  const double busy = static_cast<double>(current) + static_cast<double>(std::min(before, kWindowNs)) * left;
  return std::min(1.0, busy / kWindowNs);
}

}  // namespace softgpu

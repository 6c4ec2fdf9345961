#include "runtime/device_servers/session_pages.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <array>

#include "base/log.h"
#include "runtime/shim/shared_page.h"

namespace fairlead {

void SessionPages::registered(InstanceId session, ServerProcess& process, bool whole) {
  over(session);
  if (!pace_.came) return;
  const auto doorbell = std::make_shared<UniqueFd>(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  Result<SharedPage> page = SharedPage::create();
  if (!page || !*doorbell) {
    return spdlog::warn("instance {} is not paced: it has no page: {}", session.value(),
                        page ? "no descriptor is left" : page.error().message);
  }
  const std::array descriptors{page->fd(), doorbell->get()};
  process.send(wire::PaceSession{session.value(), whole}, descriptors);
  numbers_[session] = ++last_;
  pace_.came(session, last_, page->share(), [doorbell] {
    const std::uint64_t one = 1;
    [[maybe_unused]] const ssize_t wrote = ::write(doorbell->get(), &one, sizeof one);
  });
}

void SessionPages::sized(InstanceId session, std::uint64_t server, int width_percent) const {
  if (pace_.sized) pace_.sized(session, server, width_percent);
}

void SessionPages::over(InstanceId session) {
  if (const auto number = numbers_.extract(session)) pace_.left(number.mapped());
}

}  // namespace fairlead

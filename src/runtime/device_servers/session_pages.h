// The pages of sessions whose calls are paced (wire/shim_page.h): a new one for each registration, since what an earlier process of the
// server said in one is over.
//
//   registered ──> page and doorbell to the server, page to who paces       over, or its server has ended ──> left
//
// Threads: the loop's. A doorbell is rung by any thread.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>

#include "base/ids.h"
#include "runtime/device_servers/server_process.h"
#include "wire/shim_page.h"

namespace fairlead {

// Who paces calls: told of the page of each session that is registered, with what is to be called when its gate has opened, and when the
// page is over, by its number, which is never used again.
struct PaceCalls {
  using LetIn = std::function<void()>;
  std::function<void(InstanceId, std::uint64_t number, std::shared_ptr<wire::ShimPage>, LetIn)> came;
  std::function<void(std::uint64_t number)> left;
  // The session's kernels are on so much of the device's SMs at once, at most; `server`: the number of the one that it is in. Again with
  // each registration.
  std::function<void(InstanceId, std::uint64_t server, int width_percent)> sized;
};

class SessionPages {
 public:
  explicit SessionPages(PaceCalls pace) : pace_(std::move(pace)) {}

  // After its registration. Where no page is to be had the log says that it is not paced.
  // whole: its kernels are not to be cut.
  void registered(InstanceId session, ServerProcess& process, bool whole);
  void sized(InstanceId session, std::uint64_t server, int width_percent) const;
  void over(InstanceId session);  // unknown: nothing happens

 private:
  const PaceCalls pace_;  // may be empty: nobody paces
  std::map<InstanceId, std::uint64_t> numbers_;
  std::uint64_t last_ = 0;
};

}  // namespace fairlead

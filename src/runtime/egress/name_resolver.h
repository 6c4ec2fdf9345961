// Looks names up beside the relay's loop, since the C library's resolver waits: as the node's machine knows them, also by its
// /etc/hosts, without its search domains.
//
// Threads: ask() and take() of one thread; look-ups on kThreads of its own.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "base/mutex.h"
#include "base/unique_fd.h"
#include "model/ip_address.h"

namespace fairlead {

enum class LookUp { kFound, kNoSuchName, kFailed };  // kFound: the name is there, perhaps without an address

struct NameFound {
  std::uint64_t question = 0;
  LookUp outcome = LookUp::kFailed;
  std::vector<IpAddress> addresses;
};

using LookUpName = std::function<NameFound(const std::string& name)>;
NameFound look_up_as_this_machine(const std::string& name);

class NameResolver {
 public:
  static constexpr std::size_t kThreads = 4, kMostWaiting = 64;

  explicit NameResolver(LookUpName look_up);
  ~NameResolver();  // waits for the look-ups that run
  NameResolver(const NameResolver&) = delete;
  NameResolver& operator=(const NameResolver&) = delete;

  int ready() const { return ready_.get(); }  // can be read when take() has something
  // false: too many wait already.
  bool ask(std::uint64_t question, std::string name);
  std::vector<NameFound> take();

 private:
  struct Wanted {
    std::uint64_t question;
    std::string name;
  };
  void work();

  const LookUpName look_up_;
  UniqueFd ready_;
  Mutex mutex_;
  ConditionVariable more_;
  std::deque<Wanted> wanted_ FL_GUARDED_BY(mutex_);
  std::vector<NameFound> found_ FL_GUARDED_BY(mutex_);
  bool is_ending_ FL_GUARDED_BY(mutex_) = false;
  std::vector<std::thread> threads_;
};

}  // namespace fairlead

#include "runtime/egress/name_resolver.h"

#include <netdb.h>
#include <netinet/in.h>
#include <resolv.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <memory>

namespace fairlead {

NameFound look_up_as_this_machine(const std::string& name) {
  // Reads the machine's configuration as it is now. Its search domains would make other names of this one.
  ::res_init();
  _res.options &= ~static_cast<unsigned long>(RES_DNSRCH | RES_DEFNAMES);
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* first = nullptr;
  const int error = ::getaddrinfo(name.c_str(), nullptr, &hints, &first);
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> owner(first, &::freeaddrinfo);
  NameFound found;
  found.outcome = error == EAI_NONAME ? LookUp::kNoSuchName : LookUp::kFailed;
  if (error == 0 || error == EAI_NODATA) found.outcome = LookUp::kFound;
  for (const addrinfo* entry = first; error == 0 && entry != nullptr; entry = entry->ai_next) {
    if (const auto address = IpAddress::of(*entry->ai_addr)) found.addresses.push_back(*address);
  }
  return found;
}

NameResolver::NameResolver(LookUpName look_up)
    : look_up_(std::move(look_up)), ready_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  for (std::size_t i = 0; i < kThreads; ++i) threads_.emplace_back([this] { work(); });
}

NameResolver::~NameResolver() {
  {
    const MutexLock lock(mutex_);
    is_ending_ = true;
  }
  more_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

bool NameResolver::ask(std::uint64_t question, std::string name) {
  {
    const MutexLock lock(mutex_);
    if (wanted_.size() >= kMostWaiting) return false;
    wanted_.push_back({question, std::move(name)});
  }
  more_.notify_one();
  return true;
}

std::vector<NameFound> NameResolver::take() {
  eventfd_t ignored = 0;
  ::eventfd_read(ready_.get(), &ignored);
  const MutexLock lock(mutex_);
  return std::exchange(found_, {});
}

void NameResolver::work() {
  while (true) {
    Wanted wanted;
    {
      const MutexLock lock(mutex_);
      while (wanted_.empty() && !is_ending_) more_.wait(mutex_);
      if (is_ending_) return;
      wanted = std::move(wanted_.front());
      wanted_.pop_front();
    }
    NameFound found = look_up_(wanted.name);
    found.question = wanted.question;
    {
      const MutexLock lock(mutex_);
      found_.push_back(std::move(found));
    }
    ::eventfd_write(ready_.get(), 1);
  }
}

}  // namespace fairlead

#include "net/host_resolver.h"

#include <netdb.h>

#include <algorithm>
#include <boost/asio/post.hpp>
#include <cstdint>
#include <map>
#include <system_error>
#include <thread>
#include <utility>

#include "base/mutex.h"

namespace fairlead::net {

Result<std::vector<SocketAddress>> look_up_host(const std::string& host, const std::string& port) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* first = nullptr;
  const int error = ::getaddrinfo(host.c_str(), port.c_str(), &hints, &first);
  if (error != 0) return fail(Errc::kUnavailable, "cannot resolve host '{}': {}", host, ::gai_strerror(error));
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> owner(first, &::freeaddrinfo);
  std::vector<SocketAddress> found;
  for (const addrinfo* entry = first; entry != nullptr; entry = entry->ai_next) {
    SocketAddress& address = found.emplace_back();
    address.family = entry->ai_family;
    address.size = std::min<unsigned>(entry->ai_addrlen, sizeof address.storage);
    std::copy_n(reinterpret_cast<const char*>(entry->ai_addr), address.size, address.storage);
  }
  return found;
}

namespace {

using Found = Result<std::vector<SocketAddress>>;

}  // namespace

struct HostResolver::State {
  explicit State(boost::asio::io_context& loop) : io(&loop) {}

  Mutex mutex;
  boost::asio::io_context* io FL_GUARDED_BY(mutex);            // null: the resolver has gone
  std::map<std::uint64_t, Done> waiting FL_GUARDED_BY(mutex);  // called and destroyed on the loop's thread alone
  std::size_t threads FL_GUARDED_BY(mutex) = 0;
  std::uint64_t last FL_GUARDED_BY(mutex) = 0;
  LookUp look_up;

  static bool begin(const std::shared_ptr<State>& state, std::uint64_t question, const std::string& host,
                    const std::string& port) FL_REQUIRES(state->mutex);

  void tell(std::uint64_t question, Found found) {
    Done done;
    {
      const MutexLock lock(mutex);
      const auto asked = waiting.find(question);
      if (asked == waiting.end()) return;
      done = std::move(asked->second);
      waiting.erase(asked);
    }
    done(std::move(found));
  }
};

HostResolver::HostResolver(boost::asio::io_context& io, LookUp look_up) : state_(std::make_shared<State>(io)) {
  state_->look_up = std::move(look_up);
}

HostResolver::~HostResolver() {
  std::map<std::uint64_t, Done> untold;  // destroyed without the lock
  const MutexLock lock(state_->mutex);
  state_->io = nullptr;
  untold.swap(state_->waiting);
}

// False: no thread is left for it.
bool HostResolver::State::begin(const std::shared_ptr<State>& state, std::uint64_t question, const std::string& host,
                                const std::string& port) {
  if (state->threads >= kMost) return false;
  try {
    std::thread([state, question, host, port] {
      Found found = state->look_up(host, port);
      const MutexLock lock(state->mutex);
      --state->threads;
      if (state->io == nullptr) return;
      boost::asio::post(*state->io, [state, question, found = std::move(found)]() mutable {
        state->tell(question, std::move(found));
      });
    }).detach();
  } catch (const std::system_error&) {  // the kernel gives this user no more
    return false;
  }
  ++state->threads;
  return true;
}

void HostResolver::ask(const std::string& host, const std::string& port, Done done) {
  const MutexLock lock(state_->mutex);
  const std::uint64_t question = ++state_->last;
  state_->waiting.emplace(question, std::move(done));
  if (State::begin(state_, question, host, port)) return;
  Found refused = fail(Errc::kResourceExhausted, "'{}' is not looked up: {} names are, and no thread is left for it",
                       host, state_->threads);
  boost::asio::post(*state_->io, [state = state_, question, refused = std::move(refused)]() mutable {
    state->tell(question, std::move(refused));
  });
}

}  // namespace fairlead::net

#include "runtime/model_server/model_server.h"

#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <deque>

#include "base/log.h"
#include "runtime/fd_socket.h"
#include "runtime/model_server/frames.h"
#include "runtime/model_server/tenant_turns.h"
#include "runtime/model_server/tensor_memory.h"

namespace fairlead::model_server {
namespace {

constexpr unsigned kFullPauseUs = 20'000;

class Server {
 public:
  Server(TensorMemory& memory, int socket) : memory_(memory), socket_(socket) {}

  // Orders are read first, and done in turn (tenant_turns.h): nobody's memory waits for all of another's hashes.
  int run() {
    while (true) {
      pollfd readable{socket_.get(), POLLIN, 0};
      if (::poll(&readable, 1, turns_.empty() ? -1 : 0) > 0) {
        FdMessage message;
        const int error = receive_message(socket_.get(), message);
        if (error == EINTR) continue;
        if (error != 0 || message.bytes.empty()) return 0;  // the node has gone
        const auto version = version_of(message.bytes);
        if (version != kProtocolVersion || message.bytes.size() != sizeof(Order)) {
          spdlog::error(
              "model server: the node speaks version {} of their protocol, this program {}: they are of two releases; "
              "restart the node",
              version.value_or(0), kProtocolVersion);
          return 1;
        }
        Order order;
        std::memcpy(&order, message.bytes.data(), sizeof order);
        handle(order);
      } else if (const Order* const turn = turns_.next()) {
        work_on(*turn);
      }
    }
  }

 private:
  void handle(const Order& order) {
    switch (order.kind) {
      case OrderKind::kCreate:
      case OrderKind::kHash: return turns_.add(order.tenant, order, order.kind == OrderKind::kCreate);
      case OrderKind::kDrop:
        turns_.remove([&](const Order& waits) { return waits.tensor == order.tensor; });
        memory_.drop(order.tensor);
        return send(ReportKind::kDropped, order.tensor);
    }
  }

  // One piece of a hash; all of a tensor's memory, which is made at the speed of the device.
  void work_on(const Order& order) {
    const bool is_hash = order.kind == OrderKind::kHash;
    const std::uint64_t tensor = order.tensor;
    if (is_hash && !hash_on(tensor)) return;
    if (!is_hash) create(order);
    turns_.remove(
        [&](const Order& done) { return done.tensor == tensor && (done.kind == OrderKind::kHash) == is_hash; });
  }

  void create(const Order& order) {
    const auto blocks = memory_.add(order.tensor, order.bytes);
    if (!blocks) {
      const bool full = blocks.error().code == Errc::kResourceExhausted;
      return send(full ? ReportKind::kFull : ReportKind::kFailed, order.tensor, blocks.error().message);
    }
    std::vector<int> descriptors;
    for (const UniqueFd& block : *blocks) descriptors.push_back(block.get());
    for (std::span<const int> left = descriptors; !left.empty();) {
      const std::size_t count = std::min(left.size(), kMaxMessageFds);
      send(ReportKind::kBlocks, order.tensor, {}, left.first(count));
      left = left.subspan(count);
    }
    send(ReportKind::kCreated, order.tensor);
  }

  // Whether it is over.
  bool hash_on(std::uint64_t tensor) {
    const auto digest = memory_.hash_on(tensor);
    if (digest && !*digest) return false;
    if (digest) {
      post({.kind = ReportKind::kHashed, .tensor = tensor, .digest = **digest}, {});
    } else {
      send(ReportKind::kFailed, tensor, digest.error().message);
    }
    return true;
  }

  void send(ReportKind kind, std::uint64_t tensor, const std::string& message = {}, std::span<const int> fds = {}) {
    Report report{.kind = kind, .tensor = tensor};
    message.copy(report.message, sizeof report.message - 1);
    post(report, fds);
  }
  void post(const Report& report, std::span<const int> fds) {
    const std::string_view bytes(reinterpret_cast<const char*>(&report), sizeof report);
    int error = send_message(socket_.get(), bytes, fds);
    // Descriptors that programs have not fetched yet are as many as may be on their way: that passes.
    for (; error == ETOOMANYREFS; error = send_message(socket_.get(), bytes, fds)) ::usleep(kFullPauseUs);
    if (error != 0) {
      spdlog::error("model server: answer the node: {}", std::strerror(error));
      ::_exit(1);
    }
  }

  TensorMemory& memory_;
  UniqueFd socket_;
  TenantTurns<Order> turns_;
};

}  // namespace

int run(const Options& options) {
  init_log("info");
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  if (::sodium_init() < 0) return 1;
  auto cuda = CudaContext::open(options.library_dir, 0);
  if (!cuda) {
    spdlog::error("model server: {}", cuda.error().message);
    return 1;
  }
  auto shareable = ShareableMemory::open(options.library_dir, **cuda);
  if (!shareable) {
    spdlog::error("model server: {}", shareable.error().message);
    return 1;
  }
  auto memory = TensorMemory::create(**cuda, *std::move(shareable));
  if (!memory) {
    spdlog::error("model server: {}", memory.error().message);
    return 1;
  }
  // Nothing here needs an orderly end; the driver frees what no program has mapped.
  ::_exit(Server(**memory, options.socket).run());
}

}  // namespace fairlead::model_server

// One instance's shims: its listening socket, the processes that said Hello there, their part in its moves.
//
//   connected ──Hello──> greeted ──socket closed──> cut ──pid dead──> forgotten
//
// With checkpoints the node moves the processes itself (ProcessMover), whether they are cut or not; their shims only count,
// and do not know that what they count is away.
//
// A cut process still holds its memory, and is counted, until its pid is dead. One that connects again replaces itself;
// what it had staged before stays where it is, because it may not have taken it back yet.
//
// Threads: everything on the io_context's thread.
#pragma once

#include <atomic>
#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/steady_timer.hpp>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/lifetime.h"
#include "runtime/shim/move_join.h"
#include "runtime/shim/rate_limit.h"
#include "runtime/shim/shared_page.h"
#include "runtime/shim/shim_connection.h"
#include "runtime/shim/shim_host.h"

namespace fairlead {

// What an instance needs of its host. Outlives it.
struct ShimContext {
  boost::asio::io_context& io;
  const ShimHostOptions& options;
  const ShimEvents& events;
  StagingArenas& arenas;
  std::uint64_t& last_process;  // numbers are the node's: they name arenas
  std::uint64_t& last_request;
};

class ShimInstance {
 public:
  // A function that makes more of these than it may is refused, and only that.
  static constexpr std::size_t kMaxProcesses = 64;
  static constexpr std::size_t kMaxStrangers = 16;     // connected, no Hello yet; the oldest goes
  static constexpr std::size_t kMaxRoomRequests = 64;  // unanswered, of one process
  static constexpr Bytes kStagingSlack = mib(128);     // granted beyond what it holds: granules are coarse

  ShimInstance(const ShimContext& context, ShimTerms terms, std::uint64_t token);
  ~ShimInstance();
  ShimInstance(const ShimInstance&) = delete;
  ShimInstance& operator=(const ShimInstance&) = delete;

  Result<ShimAccess> open();

  void swap_out(std::uint64_t bytes, Duration deadline);
  void swap_in();
  void grant_room(std::uint64_t request, bool granted);
  std::optional<ShimUse> measure();

 private:
  using ProcessId = std::uint64_t;
  struct Greeted {
    explicit Greeted(SharedPage shared, boost::asio::posix::stream_descriptor death)
        : page(std::move(shared)), pidfd(std::move(death)) {}
    pid_t pid = 0;
    SharedPage page;
    boost::asio::posix::stream_descriptor pidfd;  // readable when it is dead
    std::size_t room_requests = 0;
    bool replaced = false;      // its process has connected again: only its arena still counts
    bool checkpointed = false;  // away as a whole
    // What it took on the device when it left last, contexts too; written by the thread that moves it.
    std::shared_ptr<std::atomic<std::int64_t>> footprint = std::make_shared<std::atomic<std::int64_t>>(0);
  };
  struct Process {
    std::unique_ptr<ShimConnection> connection;  // null: cut
    std::unique_ptr<Greeted> greeted;            // null: no Hello yet
  };
  struct RoomRequest {
    ProcessId process;
    std::uint64_t number;  // the shim's
  };
  using Processes = std::map<ProcessId, Process>;

  void wait_accept();
  void accept_all();
  void admit(UniqueFd socket);
  std::size_t strangers() const;

  void on_frame(ProcessId id, const wire::Frame& frame);
  void on_hello(ProcessId id, const wire::Hello& hello);
  Status greet(ProcessId id, Process& process, std::uint32_t version);
  void on_moved(ProcessId id, const wire::Moved& moved);
  void on_need_room(ProcessId id, const wire::NeedRoom& need);
  void on_need_staging(ProcessId id, const wire::NeedStaging& need);
  void on_closed(ProcessId id, const std::string& why);
  void on_dead(ProcessId id);

  void cut(ProcessId id, const std::string& why);
  void forget(ProcessId id);
  void replace_earlier(ProcessId id, Greeted& by);
  void send(ProcessId id, const wire::Frame& frame, std::span<const int> fds = {});
  void send_orders(const std::vector<MoveJoin::Order>& orders, Duration deadline);
  bool moves_processes() const { return context_.options.backend == wire::MemoryBackend::kCheckpoint; }
  void move_process(const MoveJoin::Order& order, Duration patience);
  void on_process_moved(ProcessId id, pid_t pid, const wire::Moved& moved);
  void report_moves();
  std::vector<MoveJoin::Candidate> candidates() const;
  std::uint64_t claimed(const std::atomic<std::uint64_t>& word) const;
  Bytes footprint() const;
  std::vector<wire::ShimPage*> pages() const;
  void share_cap();
  void complain(const std::string& why);

  const ShimContext& context_;
  const ShimTerms terms_;
  const std::uint64_t token_;
  const std::string socket_path_;
  boost::asio::posix::stream_descriptor listener_;
  boost::asio::steady_timer accept_pause_;
  RateLimit accepts_{200, 100};
  RateLimit wants_{1000, 200};
  Processes processes_;
  std::map<std::uint64_t, RoomRequest> room_requests_;
  MoveJoin moves_;
  Duration ended_gpu_time_{0};  // of processes that are dead
  Duration gpu_time_{0};
  ShimCalls ended_calls_, calls_;  // as the two above
  bool ever_greeted_ = false;
  bool complained_ = false;
  Lifetime life_;
};

}  // namespace fairlead

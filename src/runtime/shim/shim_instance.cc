#include "runtime/shim/shim_instance.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <boost/asio/post.hpp>
#include <cerrno>
#include <utility>

#include "base/clock.h"
#include "base/lifetime.h"
#include "base/log.h"
#include "runtime/shim/cap_shares.h"
#include "runtime/unix_listener.h"
#include "wire/shim_codec.h"

namespace fairlead {
namespace {

using Descriptor = boost::asio::posix::stream_descriptor;
using wire::Frame;
using wire::FrameKind;

constexpr int kSocketBacklog = 64;
constexpr auto kAcceptPause = std::chrono::milliseconds(100);
constexpr auto kMaxGpuTime = std::chrono::hours(24 * 365);

// The process at the other end, by a descriptor that no reuse of its number can mislead.
struct Peer {
  pid_t pid = 0;
  UniqueFd pidfd;
};
Result<Peer> peer_of(int socket) {
  ucred credentials{};
  socklen_t size = sizeof credentials;
  if (::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &credentials, &size) != 0) {
    return fail(errno_error(errno, "SO_PEERCRED of a shim"));
  }
  UniqueFd pidfd(static_cast<int>(::syscall(SYS_pidfd_open, credentials.pid, 0)));
  if (!pidfd) return fail(errno_error(errno, fmt::format("pidfd_open {}", credentials.pid)));
  return Peer{credentials.pid, std::move(pidfd)};
}

// By its pidfd, which is readable once it is dead.
bool is_alive(int pidfd) {
  pollfd dead{pidfd, POLLIN, 0};
  return pidfd >= 0 && ::poll(&dead, 1, 0) == 0;
}

Duration bounded_time(const wire::ShimPage& page) {
  const Duration most = kMaxGpuTime;
  return Duration(std::min<std::uint64_t>(page.gpu_time_ns.load(), static_cast<std::uint64_t>(most.count())));
}

// Room for the sums of many processes.
constexpr std::uint64_t kMostCalls = std::uint64_t{1} << 53;

ShimCalls& operator+=(ShimCalls& sum, const wire::ShimPage& page) {
  const auto add = [](std::uint64_t& to, const std::atomic<std::uint64_t>& word) {
    to = std::min(to + std::min(word.load(), kMostCalls), kMostCalls);
  };
  add(sum.launches, page.launches);
  add(sum.gate_waits, page.gate_waits);
  add(sum.passed_through, page.passed_through);
  add(sum.unhooked_functions, page.unhooked_functions);
  return sum;
}

ShimCalls most(const ShimCalls& a, const ShimCalls& b) {
  return {std::max(a.launches, b.launches), std::max(a.gate_waits, b.gate_waits),
          std::max(a.passed_through, b.passed_through), std::max(a.unhooked_functions, b.unhooked_functions)};
}

Bytes to_bytes(std::uint64_t count) {
  return Bytes(static_cast<std::int64_t>(count));
}

}  // namespace

ShimInstance::ShimInstance(const ShimContext& context, ShimTerms terms, std::uint64_t token)
    : context_(context),
      terms_(std::move(terms)),
      token_(token),
      socket_path_(fmt::format("{}/{}.shim.sock", context.options.socket_dir, terms_.instance.value())),
      listener_(context.io),
      accept_pause_(context.io) {}

ShimInstance::~ShimInstance() {
  for (const auto& [id, process] : processes_) context_.arenas.remove(id);
  ::unlink(socket_path_.c_str());
}

Result<ShimAccess> ShimInstance::open() {
  Result<UniqueFd> listener = listen_on_unix(socket_path_, SOCK_SEQPACKET, kSocketBacklog);
  if (!listener) return fail(listener.error());
  listener_.assign(listener->release());
  wait_accept();
  return ShimAccess{context_.options.library, socket_path_, token_};
}

// ---- connections

void ShimInstance::wait_accept() {
  listener_.async_wait(Descriptor::wait_read, life_.on_success([this] { accept_all(); }));
}

void ShimInstance::accept_all() {
  while (accepts_.take(monotonic_now())) {
    UniqueFd socket(::accept4(listener_.native_handle(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!socket && (errno == EAGAIN || errno == EINTR || errno == ECONNABORTED)) return wait_accept();
    if (!socket) break;  // no descriptor is left; later
    admit(std::move(socket));
  }
  accept_pause_.expires_after(kAcceptPause);
  accept_pause_.async_wait(life_.on_success([this] { accept_all(); }));
}

std::size_t ShimInstance::strangers() const {
  return static_cast<std::size_t>(
      std::count_if(processes_.begin(), processes_.end(), [](const auto& entry) { return !entry.second.greeted; }));
}

void ShimInstance::admit(UniqueFd socket) {
  if (strangers() >= kMaxStrangers) {
    const auto oldest =
        std::find_if(processes_.begin(), processes_.end(), [](const auto& entry) { return !entry.second.greeted; });
    forget(oldest->first);
  }
  const ProcessId id = ++context_.last_process;
  ShimConnection::Events events{.frame = [this, id](const Frame& frame) { on_frame(id, frame); },
                                .closed = [this, id](const std::string& why) { on_closed(id, why); }};
  auto connection = std::make_unique<ShimConnection>(context_.io, std::move(socket), std::move(events));
  ShimConnection& started = *connection;
  processes_[id].connection = std::move(connection);
  started.start();
}

void ShimInstance::on_closed(ProcessId id, const std::string& why) {
  cut(id, why);
  report_moves();
}

// Ends the connection, not the process: its memory is counted until it is dead.
void ShimInstance::cut(ProcessId id, const std::string& why) {
  const auto found = processes_.find(id);
  if (found == processes_.end() || !found->second.connection) return;
  if (!why.empty()) complain(why);
  std::unique_ptr<ShimConnection> connection = std::move(found->second.connection);
  connection->shut();
  if (found->second.greeted && context_.events.process_left) context_.events.process_left(id);
  // It may be in the middle of a call to us.
  boost::asio::post(context_.io, [connection = std::move(connection)] {});
  std::erase_if(room_requests_, [id](const auto& entry) { return entry.second.process == id; });
  if (!moves_processes()) moves_.lost(id, wire::MoveResult::kBusy);
  if (!found->second.greeted) processes_.erase(found);
}

void ShimInstance::forget(ProcessId id) {
  moves_.lost(id, wire::MoveResult::kNothing);
  cut(id, {});
  processes_.erase(id);
  context_.arenas.remove(id);
}

void ShimInstance::on_dead(ProcessId id) {
  const auto found = processes_.find(id);
  if (found == processes_.end()) return;
  if (const Greeted& greeted = *found->second.greeted; !greeted.replaced) {
    ended_gpu_time_ += bounded_time(*greeted.page);
    ended_calls_ += *greeted.page;
  }
  forget(id);
  share_cap();
  report_moves();
  context_.events.usage_changed(terms_.instance);
}

// ---- frames

void ShimInstance::on_frame(ProcessId id, const Frame& frame) {
  const bool greeted = processes_.at(id).greeted != nullptr;
  if (greeted == (frame.kind == FrameKind::kHello)) {
    cut(id, fmt::format("shim frame {}: {}", wire::frame_kind_name(frame.kind),
                        greeted ? "a second one" : "it must be Hello, the first"));
    return report_moves();
  }
  switch (frame.kind) {
    case FrameKind::kHello: return on_hello(id, frame.body.hello);
    case FrameKind::kMoved: return on_moved(id, frame.body.moved);
    case FrameKind::kNeedRoom: return on_need_room(id, frame.body.need_room);
    case FrameKind::kNeedStaging: return on_need_staging(id, frame.body.need_staging);
    case FrameKind::kReturnStaging: {
      const wire::ReturnStaging& back = frame.body.return_staging;
      if (context_.arenas.give_back(id, back.offset, back.bytes)) return;
      cut(id, fmt::format("shim frame ReturnStaging: {} bytes at {} were never granted", back.bytes, back.offset));
      return report_moves();
    }
    case FrameKind::kWantMemory:
      if (wants_.take(monotonic_now())) context_.events.wants_memory(terms_.instance);
      return;
    default: return;  // the codec lets no other pass
  }
}

void ShimInstance::on_hello(ProcessId id, const wire::Hello& hello) {
  const std::size_t greeted = processes_.size() - strangers();
  if (hello.token != token_) return cut(id, "shim frame Hello: the token is not this instance's");
  if (hello.version < wire::kOldestShimVersion || hello.version > wire::kShimVersion) {
    return cut(id, fmt::format("shim frame Hello: version is {}, it must be between {} and {}", hello.version,
                               wire::kOldestShimVersion, wire::kShimVersion));
  }
  if (greeted >= kMaxProcesses) {
    return cut(id, fmt::format("{} processes of the instance use a GPU, at most {} may", greeted + 1, kMaxProcesses));
  }
  if (Status status = greet(id, processes_.at(id), hello.version); !status) return cut(id, status.error().message);
  report_moves();  // of the process under its earlier number
  context_.events.usage_changed(terms_.instance);
}

Status ShimInstance::greet(ProcessId id, Process& process, std::uint32_t version) {
  Result<Peer> peer = peer_of(process.connection->native_handle());
  if (!peer) return fail(peer.error());
  Result<SharedPage> page = SharedPage::create();
  if (!page) return fail(page.error());
  (*page)->version = version;
  int fds[2] = {page->fd(), -1};
  const std::uint64_t arena_bytes = context_.arenas.arena_bytes();
  if (arena_bytes > 0) {
    const Result<int> arena = context_.arenas.open(id);
    if (!arena) return fail(arena.error());
    fds[1] = *arena;
  }
  auto greeted = std::make_unique<Greeted>(std::move(*page), Descriptor(context_.io, peer->pidfd.release()));
  greeted->pid = peer->pid;
  replace_earlier(id, *greeted);
  process.greeted = std::move(greeted);
  process.greeted->pidfd.async_wait(Descriptor::wait_read, life_.on_success([this, id] { on_dead(id); }));
  ever_greeted_ = true;
  share_cap();
  if (context_.events.process_came) context_.events.process_came(terms_.instance, id, process.greeted->page.share());

  Frame welcome = wire::make_frame(FrameKind::kWelcome);
  const wire::MemoryBackend told = moves_processes() ? wire::MemoryBackend::kNone : context_.options.backend;
  welcome.body.welcome = {arena_bytes, told, context_.options.uvm};
  send(id, welcome, std::span(fds, arena_bytes > 0 ? 2 : 1));
  return {};
}

// A process connects again after its socket was cut, or after an exec. Its new page says what the old one did until the
// process has written there itself: what it holds is never out of sight.
void ShimInstance::replace_earlier(ProcessId id, Greeted& by) {
  for (const auto& [earlier, process] : processes_) {
    if (earlier == id || !process.greeted || process.greeted->pid != by.pid || process.greeted->replaced) continue;
    for (const auto counter :
         {&wire::ShimPage::held, &wire::ShimPage::resident, &wire::ShimPage::away, &wire::ShimPage::fixed,
          &wire::ShimPage::gpu_time_ns, &wire::ShimPage::launches, &wire::ShimPage::gate_waits,
          &wire::ShimPage::passed_through, &wire::ShimPage::unhooked_functions}) {
      ((*by.page).*counter).store(((*process.greeted->page).*counter).load());
    }
    by.checkpointed = process.greeted->checkpointed;
    by.footprint = process.greeted->footprint;
    cut(earlier, {});
    if (context_.arenas.budget().granted(earlier) == Bytes(0)) return forget(earlier);
    process.greeted->replaced = true;
    return;
  }
}

void ShimInstance::on_moved(ProcessId id, const wire::Moved& moved) {
  if (moves_processes() || !moves_.answered(id, moved)) cut(id, "shim frame Moved: it answers no order");
  report_moves();
}

void ShimInstance::on_need_room(ProcessId id, const wire::NeedRoom& need) {
  Greeted& process = *processes_.at(id).greeted;
  if (process.room_requests >= kMaxRoomRequests) {
    Frame refusal = wire::make_frame(FrameKind::kRoom);
    refusal.body.room = {need.request, 0};
    return send(id, refusal);
  }
  ++process.room_requests;
  const std::uint64_t request = ++context_.last_request;
  room_requests_[request] = {id, need.request};
  context_.events.needs_room(terms_.instance, request, to_bytes(need.bytes));
}

void ShimInstance::on_need_staging(ProcessId id, const wire::NeedStaging& need) {
  Bytes granted = to_bytes(need.bytes);
  Bytes before{0};  // in arenas of connections that were cut; whether it is still in use, only the process knows
  for (const auto& [other, process] : processes_) {
    const bool replaced = process.greeted && process.greeted->replaced;
    (replaced ? before : granted) += context_.arenas.budget().granted(other);
  }
  granted += std::max(Bytes(0), before - footprint());
  auto answer = life_.guarded([this, id, need](std::optional<std::uint64_t> offset) {
    Frame staging = wire::make_frame(FrameKind::kStaging);
    staging.body.staging = {need.request, offset.value_or(0), offset ? need.bytes : 0};
    send(id, staging);
  });
  if (granted > footprint() + kStagingSlack) return answer(std::nullopt);
  context_.arenas.request(id, need.bytes, answer);
}

void ShimInstance::send(ProcessId id, const Frame& frame, std::span<const int> fds) {
  const auto found = processes_.find(id);
  if (found != processes_.end() && found->second.connection) found->second.connection->send(frame, fds);
}

// ---- moves

void ShimInstance::swap_out(std::uint64_t bytes, Duration deadline) {
  send_orders(moves_.swap_out(bytes, candidates()), deadline);
}

void ShimInstance::swap_in() {
  send_orders(moves_.swap_in(candidates()), Duration(0));
}

void ShimInstance::send_orders(const std::vector<MoveJoin::Order>& orders, Duration deadline) {
  for (const MoveJoin::Order& order : orders) {
    if (moves_processes()) {
      move_process(order, deadline);
      continue;
    }
    const bool out = order.direction == SwapDirection::kOut;
    Frame frame = wire::make_frame(out ? FrameKind::kSwapOut : FrameKind::kSwapIn);
    if (out) frame.body.swap_out = {order.bytes, static_cast<std::uint64_t>(deadline.count())};
    send(order.process, frame);
  }
  if (!orders.empty()) return;
  boost::asio::post(context_.io, life_.guarded([this] { report_moves(); }));
}

// On a thread of the GPU's, after what was ordered before. Whoever is moved may die, or connect again, meanwhile.
void ShimInstance::move_process(const MoveJoin::Order& order, Duration patience) {
  Greeted& greeted = *processes_.at(order.process).greeted;
  const auto pidfd = std::make_shared<UniqueFd>(::fcntl(greeted.pidfd.native_handle(), F_DUPFD_CLOEXEC, 0));
  ProcessMover::Process process{greeted.pid, terms_.gpu, [pidfd] { return is_alive(pidfd->get()); }};
  const bool out = order.direction == SwapDirection::kOut;
  const auto moved = std::make_shared<wire::Moved>();
  moved->answered = out ? FrameKind::kSwapOut : FrameKind::kSwapIn;
  const Bytes resident = to_bytes(claimed(greeted.page->resident));
  auto job = [moved, mover = context_.options.mover, footprint = greeted.footprint, process, out, patience, resident] {
    const Instant begin = monotonic_now();
    const Bytes needed = std::max(resident, Bytes(footprint->load()));
    const ProcessMover::Outcome outcome = out ? mover->out(process, patience) : mover->in(process, needed);
    const bool done = outcome.result == wire::MoveResult::kDone;
    if (out && done) footprint->store(std::max(resident, outcome.used).count());
    moved->result = outcome.result;
    moved->bytes = done ? static_cast<std::uint64_t>(resident.count()) : 0;
    moved->move_ns = moved->total_ns = static_cast<std::uint64_t>((monotonic_now() - begin).count());
  };
  auto done =
      life_.guarded([this, id = order.process, pid = greeted.pid, moved] { on_process_moved(id, pid, *moved); });
  context_.options.run_move(terms_.gpu, std::move(job), std::move(done));
}

void ShimInstance::on_process_moved(ProcessId id, pid_t pid, const wire::Moved& moved) {
  const bool done = moved.result == wire::MoveResult::kDone;
  for (auto& [other, process] : processes_) {  // under the number it has now
    if (!process.greeted || process.greeted->pid != pid || process.greeted->replaced) continue;
    if (moved.answered == FrameKind::kSwapOut && done) process.greeted->checkpointed = true;
    const bool back = done || moved.result == wire::MoveResult::kNothing;
    if (moved.answered == FrameKind::kSwapIn && back) process.greeted->checkpointed = false;
  }
  if (moves_.answered(id, moved)) return report_moves();
  context_.events.usage_changed(terms_.instance);  // its order was given up when it connected again, or died
}

void ShimInstance::report_moves() {
  const Lifetime::Watch life = life_.watch();
  while (!life.ended()) {
    const std::optional<SwapOutcome> outcome = moves_.take_finished();
    if (!outcome) return;
    context_.events.moved(terms_.instance, *outcome);
  }
}

std::vector<MoveJoin::Candidate> ShimInstance::candidates() const {
  std::vector<MoveJoin::Candidate> all;
  for (const auto& [id, process] : processes_) {
    if (!process.greeted || process.greeted->replaced) continue;
    const wire::ShimPage& page = *process.greeted->page;
    const std::uint64_t resident = claimed(page.resident);
    if (moves_processes()) {
      const bool away = process.greeted->checkpointed;
      all.push_back({id, away ? 0 : resident, away ? std::max<std::uint64_t>(resident, 1) : 0});
      continue;
    }
    if (!process.connection) continue;
    all.push_back({id, resident - std::min(resident, claimed(page.fixed)), claimed(page.away)});
  }
  return all;
}

void ShimInstance::grant_room(std::uint64_t request, bool granted) {
  const auto node = room_requests_.extract(request);
  if (node.empty()) return;
  const auto& [id, number] = node.mapped();
  --processes_.at(id).greeted->room_requests;
  Frame room = wire::make_frame(FrameKind::kRoom);
  room.body.room = {number, granted ? 1u : 0u};
  send(id, room);
}

// ---- accounting

// A process could really take a whole device; it can claim no more.
std::uint64_t ShimInstance::claimed(const std::atomic<std::uint64_t>& word) const {
  const auto most = terms_.device_memory.count() > 0 ? static_cast<std::uint64_t>(terms_.device_memory.count())
                                                     : wire::kMaxFrameBytes;
  return std::min(word.load(), most);
}

Bytes ShimInstance::footprint() const {
  Bytes sum{0};
  for (const wire::ShimPage* page : pages()) sum += to_bytes(claimed(page->resident)) + to_bytes(claimed(page->away));
  return terms_.device_memory.count() > 0 ? std::min(sum, terms_.device_memory) : sum;
}

std::optional<ShimUse> ShimInstance::measure() {
  if (!ever_greeted_) return std::nullopt;
  share_cap();
  ShimUse use;
  Duration gpu_time = ended_gpu_time_;
  ShimCalls calls = ended_calls_;
  for (const auto& [id, process] : processes_) {
    if (!process.greeted || process.greeted->replaced) continue;
    const wire::ShimPage* page = &*process.greeted->page;
    use.held += to_bytes(claimed(page->held));
    if (process.greeted->checkpointed) {
      use.away += Bytes(process.greeted->footprint->load());
    } else {
      use.resident += to_bytes(claimed(page->resident));
      use.away += to_bytes(claimed(page->away));
      if (!moves_processes()) use.fixed += to_bytes(claimed(page->fixed));
    }
    // Of a process that is dead and not noticed yet nothing runs.
    if (page->busy.load() != 0 && is_alive(process.greeted->pidfd.native_handle())) ++use.busy;
    gpu_time += bounded_time(*page);
    calls += *page;
    ++use.processes;
  }
  if (terms_.device_memory.count() > 0) use.resident = std::min(use.resident, terms_.device_memory);
  use.fixed = std::min(use.fixed, use.resident);
  gpu_time_ = std::max(gpu_time_, gpu_time);
  use.gpu_time = gpu_time_;
  use.calls = calls_ = most(calls_, calls);
  return use;
}

std::vector<wire::ShimPage*> ShimInstance::pages() const {
  std::vector<wire::ShimPage*> all;
  for (const auto& [id, process] : processes_) {
    if (process.greeted && !process.greeted->replaced) all.push_back(&*process.greeted->page);
  }
  return all;
}

// The lowered first, so that what one loses is gone before another has it. A process may still pass its old share in the
// moment between; the next deal takes that back.
void ShimInstance::share_cap() {
  if (terms_.cap.count() <= 0) return;
  const std::vector<wire::ShimPage*> all = pages();
  std::vector<std::uint64_t> held;
  for (const wire::ShimPage* page : all) held.push_back(page->held.load());
  const std::vector<std::uint64_t> shares = cap_shares(static_cast<std::uint64_t>(terms_.cap.count()), held);
  for (const bool lowered : {true, false}) {
    for (std::size_t i = 0; i < all.size(); ++i) {
      const std::uint64_t before = all[i]->memory_cap.load();
      const bool falls = before == 0 || shares[i] < before;
      if (falls == lowered && shares[i] != before) all[i]->memory_cap.store(shares[i]);
    }
  }
}

void ShimInstance::complain(const std::string& why) {
  const auto level = std::exchange(complained_, true) ? spdlog::level::debug : spdlog::level::warn;
  spdlog::log(level, "instance {} of {}: {}; its connection is closed", terms_.instance.value(), terms_.function, why);
}

}  // namespace fairlead

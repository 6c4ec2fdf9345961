#include "shim/mover.h"

#include <pthread.h>
#include <signal.h>

#include <atomic>

#include "shim/clock.h"
#include "shim/gate.h"
#include "shim/lock.h"
#include "shim/memory/memory.h"
#include "shim/node_link.h"

namespace fairlead::shim {
namespace {

constexpr int kMostOrders = 16;
constexpr std::size_t kStackBytes = 512 << 10;
constexpr std::uint64_t kReturnRetryNs = 200000000;

struct Order {
  wire::Frame frame;
  MoveAnswer answer;
  std::uint64_t received_ns;
};

constinit Lock lock;
constinit pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
constinit Order orders[kMostOrders] FL_GUARDED_BY(lock) = {};
constinit int first_order FL_GUARDED_BY(lock) = 0;
constinit int order_count FL_GUARDED_BY(lock) = 0;
constinit bool returning FL_GUARDED_BY(lock) = false;
constinit bool has_thread FL_GUARDED_BY(lock) = false;

constinit std::atomic<bool> moves{false};

wire::Moved carry_out(const Order& order) {
  if (order.frame.kind == wire::FrameKind::kSwapIn) return memory::swap_in();
  const wire::SwapOut& out = order.frame.body.swap_out;
  const std::uint64_t waited = now_ns() - order.received_ns;
  return memory::swap_out(out.bytes, out.deadline_ns > waited ? out.deadline_ns - waited : 0);
}

void finish(const Order& order, wire::Moved moved) {
  moved.answered = order.frame.kind;
  moved.total_ns = now_ns() - order.received_ns;
  order.answer(moved);
}

// After a move, a thread that came to the gate meanwhile has left asking for the memory to us.
void end_move() {
  moves.store(false);
  if (somebody_waits() && (page().gate.load() & wire::kGateMemory) != 0) want_memory();
}

bool all_returned() {
  const wire::MoveResult result = memory::swap_in().result;
  return result == wire::MoveResult::kDone || result == wire::MoveResult::kNothing;
}

void wait_for_change(std::uint64_t limit_ns) FL_REQUIRES(lock) {
  const std::uint64_t until = now_ns() + limit_ns;
  const timespec when = {static_cast<time_t>(until / 1000000000), static_cast<long>(until % 1000000000)};
  ::pthread_cond_clockwait(&changed, lock.native(), CLOCK_MONOTONIC, &when);
}

void carry_out_next() FL_REQUIRES(lock) {  // REQUIRES: an order waits
  const Order order = orders[first_order];
  first_order = (first_order + 1) % kMostOrders;
  --order_count;
  moves.store(true);
  lock.unlock();
  const wire::Moved moved = carry_out(order);
  end_move();
  finish(order, moved);
  lock.lock();
}

void bring_back() FL_REQUIRES(lock) {
  moves.store(true);
  lock.unlock();
  const bool done = all_returned();
  moves.store(false);
  lock.lock();
  if (done) {
    returning = false;
  } else if (returning && order_count == 0) {
    wait_for_change(kReturnRetryNs);
  }
}

void* move_for_ever(void*) {
  const Bypass own_work;
  const Guard guard(lock);
  for (;;) {
    if (order_count > 0) {
      carry_out_next();
    } else if (returning) {
      bring_back();
    } else {
      ::pthread_cond_wait(&changed, lock.native());
    }
  }
}

bool wake_thread() FL_REQUIRES(lock) {
  if (!has_thread) has_thread = start_thread("fl-memory", move_for_ever);
  ::pthread_cond_broadcast(&changed);
  return has_thread;
}

}  // namespace

bool start_thread(const char* name, void* (*body)(void*)) {
  pthread_attr_t attributes;
  pthread_t thread;
  sigset_t all;
  sigset_t before;
  ::sigfillset(&all);
  ::pthread_attr_init(&attributes);
  ::pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  ::pthread_attr_setstacksize(&attributes, kStackBytes);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  const bool started = ::pthread_create(&thread, &attributes, body, nullptr) == 0;
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  ::pthread_attr_destroy(&attributes);
  if (started) ::pthread_setname_np(thread, name);
  return started;
}

void order_move(const wire::Frame& order, MoveAnswer answer) {
  const Order received = {order, answer, now_ns()};
  {
    const Guard guard(lock);
    if (order_count < kMostOrders && wake_thread()) {
      orders[(first_order + order_count) % kMostOrders] = received;
      ++order_count;
      return;
    }
  }
  finish(received, {order.kind, wire::MoveResult::kBusy, 0, 0, 0});
}

void order_return() {
  const Guard guard(lock);
  if ((page().gate.load() & wire::kGateMemory) == 0 && !moves.load() && order_count == 0) return;
  returning = true;
  wake_thread();
}

void stop_return() {
  const Guard guard(lock);
  returning = false;
}

bool memory_moves() {
  return moves.load();
}

void forget_moves() {
  lock.reset();
  changed = PTHREAD_COND_INITIALIZER;
  first_order = order_count = 0;
  returning = has_thread = false;
  moves.store(false);
}

}  // namespace fairlead::shim

#include "shim/process.h"

#include <pthread.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>

#include "shim/barrier.h"
#include "shim/capture.h"
#include "shim/gate.h"
#include "shim/gpu_time.h"
#include "shim/lock.h"
#include "shim/memory/memory.h"
#include "shim/node_link.h"
#include "shim/page.h"
#include "shim/settings.h"

namespace fairlead::shim {
namespace {

constinit Lock lock;
constinit std::atomic<bool> started{false};
constinit bool watches_forks FL_GUARDED_BY(lock) = false;

const char* environment(const char* name) {
  return std::getenv(name);
}

void complain(const char* line) {
  [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, line, std::strlen(line));
}

void start_child() {
  leave_node();
  begin_page();
  forget_threads();
  forget_captures();
  forget_all_work();
  memory::forget_all();
  lock.reset();
  started.store(false);
}

void start() FL_REQUIRES(lock) {
  if (!watches_forks) watches_forks = ::pthread_atfork(nullptr, nullptr, start_child) == 0;
  prepare_barrier();
  begin_page();
  const Settings settings = read_settings(environment, complain);
  if (settings.socket != nullptr && join_node(settings.socket, settings.token)) return;
  page().memory_cap.store(settings.memory_cap, std::memory_order_relaxed);
  memory::set_up({.backend = settings.backend, .uvm = settings.uvm});
}

}  // namespace

void start_process() {
  if (started.load(std::memory_order_acquire)) return;
  const Guard guard(lock);
  if (started.load(std::memory_order_relaxed)) return;
  start();
  started.store(true, std::memory_order_release);
}

}  // namespace fairlead::shim

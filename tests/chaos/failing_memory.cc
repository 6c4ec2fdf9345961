#include "chaos/failing_memory.h"

#include <sqlite3.h>

#include <atomic>

#include "base/check.h"

namespace fairlead::chaos {
namespace {

sqlite3_mem_methods real;
std::atomic<int> left{0};

bool is_out() {
  return left.load() > 0 && left.fetch_sub(1) == 1;
}

}  // namespace

void FailingMemory::install() {
  FL_CHECK(sqlite3_config(SQLITE_CONFIG_GETMALLOC, &real) == SQLITE_OK, "SQLite is in use");
  sqlite3_mem_methods failing = real;
  failing.xMalloc = [](int bytes) { return is_out() ? nullptr : real.xMalloc(bytes); };
  failing.xRealloc = [](void* old, int bytes) { return is_out() ? nullptr : real.xRealloc(old, bytes); };
  FL_CHECK(sqlite3_config(SQLITE_CONFIG_MALLOC, &failing) == SQLITE_OK, "SQLite is in use");
}

void FailingMemory::fail_at(int allocation) {
  left = allocation;
}

}  // namespace fairlead::chaos

// SQLite's memory, which runs out when the test says so.
//
// Threads: any.
#pragma once

namespace fairlead::chaos {

struct FailingMemory {
  // REQUIRES: before SQLite's first use.
  static void install();
  // The allocation of that number, counted from now, finds no memory; 0: none.
  static void fail_at(int allocation);
};

}  // namespace fairlead::chaos

// The calls by which a program changes its files, replaced in this program and in the libraries that it uses (SQLite, the C++
// library): each goes to libc, and tells the disk of it. Calls that libc makes itself (fopen, mkdtemp) are not seen; what they
// did is, at the next sync or cut.
//
// Threads: any.
#pragma once

#include <sys/types.h>

#include <string_view>

namespace fairlead::power_cuts {

class LossyDisk;

struct DiskCalls {
  // Null: nobody is told any more.
  static void lead_to(LossyDisk* disk);
  // Without telling anybody.
  static int real_open(const char* path, int flags, mode_t mode = 0);
  static bool real_write(int fd, std::string_view bytes);
};

}  // namespace fairlead::power_cuts

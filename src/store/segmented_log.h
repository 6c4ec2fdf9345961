// Lines appended to a bounded series of files: the oldest file goes when there is more than the bound. A place in it is an
// offset, the number of bytes ever appended before; it stays valid over restarts, so that a reader can go on where it was.
//
//   00000000000000000000.csv  00000000000008388608.csv  00000000000016777216.csv     each named by its first offset
//
// Example, a bound of 64 MiB: files of 8 MiB, and when the ninth begins the first is removed.
//
// Nothing is synced: after a power cut the last lines may be missing. A line cut short by a crash is removed by open().
// Threads: one thread at a time.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "base/result.h"
#include "base/unique_fd.h"

namespace fairlead::store {

class SegmentedLog {
 public:
  static constexpr std::uint64_t kSegments = 8;

  // Makes the folder. `limit`: bytes on disk at most, in kSegments files; one append of more than a
  // kSegments-th of it takes what it needs. REQUIRES: limit >= kSegments.
  static Result<SegmentedLog> open(std::string folder, std::uint64_t limit);

  // Whole lines, each with its end; they stay together in one file.
  Status append(std::string_view lines);

  struct Page {
    std::string lines;       // empty: there is nothing more
    std::uint64_t next = 0;  // the offset to go on from
  };
  // Whole lines from `from` on, `most` bytes or less, but at least one line. What is gone already is passed over; an
  // offset beyond the end gives an empty page. REQUIRES: `from` came from a page, or is 0.
  Result<Page> read(std::uint64_t from, std::size_t most) const;

 private:
  SegmentedLog(std::string folder, std::uint64_t limit)
      : folder_(std::move(folder)), segment_limit_(limit / kSegments) {}
  Status find_segments();
  Status cut_torn_line();
  Status begin_segment();
  bool is_full(std::size_t for_bytes) const;
  std::string path_of(std::uint64_t offset) const;
  std::uint64_t end() const { return segments_.empty() ? 0 : segments_.rbegin()->first + segments_.rbegin()->second; }

  std::string folder_;
  std::uint64_t segment_limit_;
  std::map<std::uint64_t, std::uint64_t> segments_;  // first offset -> bytes
  UniqueFd last_;                                    // of the last segment; none until something is appended
};

}  // namespace fairlead::store

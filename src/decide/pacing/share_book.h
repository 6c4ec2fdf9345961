// Where the functions of a node have seats, and whether one more function fits.
//
// Idea. A seat is room for one instance of a function on one device: its share, admitted beside all other seats there (admission.h).
// A function asks for so many seats of one share and gets all of them or none. Each is tried where the function says first (where it
// sat before), then on every device in order of id: first fit. So a change moves nothing that need not move, and a set of functions
// that names its old devices fits again in every order.
//
// Example: two devices. A asks for one seat of 60 % of the time, B for two of 50 %: A sits on device 1, B on 2 and then nowhere: of 50 %
// only one fits beside the reserve of 3 %. B is refused as a whole, with what lacks on the device that comes nearest:
// "gpu:quota-request is 100.0 % of the device's time at best, 97.0 % is the most".
//
// Threads: not thread-safe. Determinism: the same calls in the same order give the same seats.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "decide/pacing/admission.h"

namespace fairlead {

struct SeatsAsked {
  PacedShare share;               // of each; its flow means nothing
  std::size_t seats = 0;          // 0: none, which always fits
  std::vector<GpuId> first = {};  // tried first, one seat for each entry; those that are not there are passed over
  std::function<bool(GpuId)> may = {};  // whether it may sit there; empty: anywhere
};

class ShareBook {
 public:
  using Seats = std::vector<GpuId>;  // one entry for each seat, sorted

  // `most_seats`: whatever their shares. REQUIRES: the device is not there.
  void add_device(GpuId gpu, const DeviceRoom& room, std::size_t most_seats);
  void set_most_seats(GpuId gpu, std::size_t most_seats);  // for seats to come. REQUIRES: the device is there
  void remove_device(GpuId gpu);                           // and all seats on it. No effect where it is not there

  // Where the function would sit instead of where it does. kInvalidArgument: not all fit; the message names field, value and bound of
  // what lacks on the device that comes nearest, and says what to do. Changes nothing.
  Result<Seats> find(const std::string& function, const SeatsAsked& asked);
  // The seats of `asked.first` that it could have, be they enough or not. Changes nothing.
  Seats find_first(const std::string& function, const SeatsAsked& asked);
  // As many of `asked.seats` as these devices have room for, beside `kept` of its own: first one for each entry of `asked.first`, then by `among`
  // in its order. A device that has no room for one has none for the next: O(devices + seats) exact tests. Changes nothing.
  struct Most {
    Seats seats;          // without `kept`
    std::string lacking;  // why there are no more, as of find(); "": none is missing
  };
  Most find_most(const std::string& function, const SeatsAsked& asked, const Seats& kept,
                 const std::vector<GpuId>& among);
  std::uint64_t tests() const { return tests_; }  // exact tests so far
  // It sits there from now on, and nowhere else, whether that fits or not.
  void hold(const std::string& function, const PacedShare& share, Seats seats);
  void release(const std::string& function);

  const Seats& seats(const std::string& function) const;  // empty also: not there
  std::size_t seats_on(GpuId gpu) const;                  // 0 also: not there

 private:
  struct DeviceBook {
    DeviceRoom room;
    Admission admission;
    std::size_t most_seats;
  };
  struct Held {
    PacedShare share;
    Seats seats;
  };

  std::vector<PacedShare> shares_on(GpuId gpu, const std::string& except) const;
  std::optional<Lacking> lacking_on(DeviceBook& device, const std::vector<PacedShare>& shares);

  std::map<GpuId, DeviceBook> devices_;
  std::map<std::string, Held> held_;
  std::uint64_t tests_ = 0;
};

}  // namespace fairlead

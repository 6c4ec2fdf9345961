// The data layer, as device servers see it: the node's ObjectStore in production, a map in tests.
//
// Threads: the loop's. Callbacks run on it, never from inside a call of this class.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "base/result.h"
#include "base/unique_fd.h"
#include "base/units.h"

namespace fairlead {

struct ObjectKey {
  std::string tenant;
  std::string key;
  auto operator<=>(const ObjectKey&) const = default;
};

class ObjectSource {
 public:
  struct Known {
    std::string content;  // digest; empty: not sealed yet
    Bytes bytes{0};       // 0: not known yet
    std::int64_t created_ms = 0;
    bool on_device = false;  // promised, and nobody has fetched it
  };
  struct Opened {
    std::string content;
    Bytes bytes{0};
    UniqueFd memory;
  };
  using Fetch = std::function<void(UniqueFd destination, std::function<void(Status)> done)>;

  virtual ~ObjectSource() = default;
  virtual std::optional<Known> look_up(const ObjectKey& name) = 0;
  virtual void open(const ObjectKey& name, Duration patience, std::function<void(Result<Opened>)> done) = 0;
  // A new object of so many bytes will come: kAlreadyExists; kTooLarge, kResourceExhausted where it could not be kept. Then
  // one of the two below.
  virtual Status expect(const ObjectKey& name, Bytes bytes) = 0;
  // `gone`: it was deleted or abandoned; at most once, and perhaps never.
  virtual Status promise(const ObjectKey& name, Bytes bytes, Fetch fetch, std::function<void()> gone) = 0;
  virtual void abandon(const ObjectKey& name, Error why) = 0;
};

}  // namespace fairlead

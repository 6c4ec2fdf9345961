// What viewers of one kind are shown, and what of it has changed since a viewer last heard of it.
//
// A view is a set of items, each a name and a JSON text. update() compares texts and numbers the frame where any differs; text_since(n) has the
// items that changed after frame n, and the names of those that went. So a viewer that was slow, or away, gets one frame that brings it up to
// date, however many it missed, and nothing has to wait for it.
//
// Example: 100 functions, one of which is called. The first frame has 101 items, each later one that function and the node.
//
// Pure. Threads: one.
#pragma once

#include <cstdint>
#include <map>
#include <string>

namespace fairlead {

class LiveView {
 public:
  using Items = std::map<std::string, std::string>;  // name -> JSON
  static constexpr std::size_t kMostGone = 4096;     // names that are remembered for those who have not heard

  void update(const Items& items);
  std::uint64_t frame() const { return frame_; }  // 0: nothing was ever shown
  // {"full": bool, "set": {name: item}, "gone": [name]}: from what was shown at frame `seen` to what is now. 0, a frame that is yet to
  // come, or one so old that names have been forgotten since: all.
  std::string text_since(std::uint64_t seen) const;

 private:
  struct Item {
    std::string json;
    std::uint64_t changed_at;
  };

  void forget_gone();

  std::map<std::string, Item> items_;
  std::map<std::string, std::uint64_t> gone_;  // name -> the frame from which on it is not there
  std::uint64_t frame_ = 0;
  std::uint64_t forgotten_at_ =
      0;  // whoever saw an earlier frame may have names of which nobody knows any more that they went
};

}  // namespace fairlead

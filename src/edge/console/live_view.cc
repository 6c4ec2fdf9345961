#include "edge/console/live_view.h"

#include <algorithm>
#include <vector>

#include "edge/json_body.h"

namespace fairlead {

void LiveView::update(const Items& items) {
  const std::uint64_t next = frame_ + 1;
  bool has_changed = frame_ == 0;
  std::erase_if(items_, [&](const auto& shown) {
    if (items.contains(shown.first)) return false;
    gone_[shown.first] = next;
    return has_changed = true;
  });
  for (const auto& [name, json] : items) {
    auto [shown, is_new] = items_.try_emplace(name, Item{json, next});
    if (is_new) {
      gone_.erase(name);
    } else if (shown->second.json != json) {
      shown->second = {json, next};
    } else {
      continue;
    }
    has_changed = true;
  }
  if (!has_changed) return;
  frame_ = next;
  forget_gone();
}

void LiveView::forget_gone() {
  if (gone_.size() <= kMostGone) return;
  std::vector<std::uint64_t> frames;
  for (const auto& [name, frame] : gone_) frames.push_back(frame);
  const auto middle = frames.begin() + std::ssize(frames) / 2;
  std::nth_element(frames.begin(), middle, frames.end());
  forgotten_at_ = *middle;
  std::erase_if(gone_, [this](const auto& one) { return one.second <= forgotten_at_; });
}

std::string LiveView::text_since(std::uint64_t seen) const {
  const bool is_full = seen == 0 || seen > frame_ || seen < forgotten_at_;
  const auto quoted = [](const std::string& name) { return to_text(nlohmann::json(name)); };
  std::string text = is_full ? R"({"full":true,"set":{)" : R"({"full":false,"set":{)";
  const char* between = "";
  for (const auto& [name, item] : items_) {
    if (!is_full && item.changed_at <= seen) continue;
    text.append(between).append(quoted(name)).append(":").append(item.json);
    between = ",";
  }
  text += R"(},"gone":[)";
  between = "";
  for (const auto& [name, frame] : gone_) {
    if (is_full || frame <= seen) continue;
    text.append(between).append(quoted(name));
    between = ",";
  }
  return text + "]}";
}

}  // namespace fairlead

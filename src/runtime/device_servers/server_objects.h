// What the node believes that one device server has: the numbers by which both know objects, and whose bytes are there. The
// server may have dropped some since; then it says that they are missing.
//
// Equal bytes of two tenants are two objects.
//
// Pure. Threads: none of its own.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "runtime/device_servers/object_source.h"

namespace fairlead {

class ServerObjects {
 public:
  using Number = std::uint64_t;  // never reused, by any server
  struct Output {
    Number object = 0;
    std::int64_t created_ms = 0;
  };
  using Outputs = std::map<ObjectKey, Output>;  // that calls have made; on the device, and perhaps nowhere else

  // `now`: what the data layer has of that name. None: the server does not have its bytes, or not so many.
  std::optional<Number> find(const ObjectKey& name, const std::optional<ObjectSource::Known>& now, Bytes size) const {
    const auto output = outputs_.find(name);
    // Deleted otherwise, or another of that name.
    if (output != outputs_.end() && now && now->created_ms == output->second.created_ms) return output->second.object;
    if (!now || now->content.empty() || now->bytes != size) return std::nullopt;
    const auto same = by_content_.find({name.tenant, now->content});
    if (same == by_content_.end() || !held_.contains(same->second)) return std::nullopt;
    return same->second;
  }

  // The server gets the bytes of that content. Its number: `fresh` where it never had any.
  Number give(const std::string& tenant, const std::string& content, Number fresh) {
    const Number number = by_content_.try_emplace({tenant, content}, fresh).first->second;
    held_.insert(number);
    return number;
  }

  void add_output(const ObjectKey& name, Output output) { outputs_[name] = output; }
  // True: it was there, under that number.
  bool remove_output(const ObjectKey& name, Number object) {
    const auto output = outputs_.find(name);
    if (output == outputs_.end() || output->second.object != object) return false;
    outputs_.erase(output);
    return true;
  }
  const Outputs& outputs() const { return outputs_; }

  // The server does not have these.
  void lose(const std::set<Number>& objects) {
    for (const Number object : objects) held_.erase(object);
    std::erase_if(outputs_, [&](const auto& output) { return objects.contains(output.second.object); });
  }
  void clear() { *this = ServerObjects(); }

 private:
  std::map<ObjectKey, Number> by_content_;  // of tenant and digest
  Outputs outputs_;
  std::set<Number> held_;
};

}  // namespace fairlead

#include "decide/graph/graph.h"

#include <algorithm>

namespace fairlead {
namespace {

constexpr std::string_view kRunPlaceholder = "{run}";

// Into a new text: replacing in place would move the rest of a payload of megabytes each time.
void replace_run(std::string& text, const std::string& run) {
  std::size_t at = text.find(kRunPlaceholder);
  if (at == std::string::npos) return;
  std::string named;
  std::size_t from = 0;
  for (; at != std::string::npos; at = text.find(kRunPlaceholder, from)) {
    named.append(text, from, at - from).append(run);
    from = at + kRunPlaceholder.size();
  }
  text = named.append(text, from);
}

bool is_run_id_character(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
}

}  // namespace

void name_run(Graph& graph, const std::string& run) {
  graph.run = run;
  for (GraphNode& node : graph.nodes) {
    replace_run(node.payload, run);
    for (auto* keys : {&node.reads, &node.writes, &node.call_reads, &node.call_writes}) {
      for (std::string& key : *keys) replace_run(key, run);
    }
  }
}

void use_call_keys(GraphNode& node) {
  node.reads.insert(node.reads.end(), node.call_reads.begin(), node.call_reads.end());
  node.writes.insert(node.writes.end(), node.call_writes.begin(), node.call_writes.end());
  node.call_reads.clear();
  node.call_writes.clear();
}

Status validate_run_id(std::string_view id) {
  if (!id.empty() && id.size() <= kMaxGraphRunIdLength && std::all_of(id.begin(), id.end(), is_run_id_character)) {
    return {};
  }
  return fail(Errc::kInvalidArgument, "run is '{}'; it must have 1 to {} letters, digits, '-' or '_'",
              id.substr(0, 2 * kMaxGraphRunIdLength), kMaxGraphRunIdLength);
}

}  // namespace fairlead

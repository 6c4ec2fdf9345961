#include "wire/graph_json.h"

#include "wire/json_value.h"

namespace fairlead::wire {
namespace {

using nlohmann::json;

constexpr std::size_t kMaxTextBytes = 4096;  // of a key or name, before anybody looks closer

std::vector<std::string> read_texts(const JsonValue& list) {
  std::vector<std::string> texts;
  if (!list.is_list(kMaxGraphNodeKeys)) return texts;
  for (std::size_t i = 0; i < list.json().size() && list.ok(); ++i) {
    texts.emplace_back(list.at(i).text(kMaxTextBytes));
  }
  return texts;
}

// Each PAYLOAD.LIST.NAME.key: what a kernel task's call reads or makes.
std::vector<std::string> call_keys(const json& payload, const char* list) {
  std::vector<std::string> keys;
  const auto bindings = payload.is_object() ? payload.find(list) : payload.end();
  if (bindings == payload.end() || !bindings->is_object()) return keys;
  for (const auto& binding : *bindings) {
    const auto key = binding.is_object() ? binding.find("key") : binding.end();
    if (key != binding.end() && key->is_string()) keys.push_back(key->get<std::string>());
  }
  return keys;
}

void read_payload(const JsonValue& value, GraphNode& node) {
  const json& payload = value.json();
  node.payload = payload.dump(-1, ' ', false, json::error_handler_t::replace);
  node.call_reads = call_keys(payload, "inputs");
  node.call_writes = call_keys(payload, "outputs");
}

GraphNode read_node(const std::string& name, const JsonValue& value) {
  GraphNode node;
  node.name = name;
  node.payload = "{}";
  if (!value.has_only({"after", "function", "payload", "reads", "retries", "writes"})) return node;
  if (const auto function = value.require("function")) node.function = function->text(kMaxTextBytes);
  if (const auto payload = value.find("payload")) read_payload(*payload, node);
  if (const auto reads = value.find("reads")) node.reads = read_texts(*reads);
  if (const auto writes = value.find("writes")) node.writes = read_texts(*writes);
  if (const auto after = value.find("after")) node.after = read_texts(*after);
  if (const auto retries = value.find("retries")) {
    node.retries = static_cast<unsigned>(retries->number(0, kMaxGraphNodeRetries));
  }
  return node;
}

void read_nodes(const JsonValue& nodes, Graph& graph) {
  if (!nodes.json().is_object()) return nodes.refuse("must be an object of nodes by name");
  if (nodes.json().empty() || nodes.json().size() > kMaxGraphNodes) {
    return nodes.refuse("has {} members; 1 to {} are possible", nodes.json().size(), kMaxGraphNodes);
  }
  for (const auto& [name, member] : nodes.json().items()) {
    if (!nodes.ok()) return;
    graph.nodes.push_back(read_node(name, nodes.at(name, member)));
  }
}

Duration read_deadline(const JsonValue& value) {
  const double least = to_seconds(kMinGraphDeadline), most = to_seconds(kMaxGraphDeadline);
  const double seconds = value.json().is_number() ? value.json().get<double>() : -1;
  if (seconds >= least && seconds <= most) return from_seconds(seconds);
  value.refuse("must be a number between {} and {}", least, most);
  return {};
}

Graph read_graph(const JsonValue& root) {
  Graph graph;
  if (!root.has_only({"concurrency", "deadline_seconds", "name", "nodes", "resume", "run"})) return graph;
  if (const auto nodes = root.require("nodes")) read_nodes(*nodes, graph);
  if (const auto name = root.find("name")) graph.name = name->text(kMaxGraphNameLength);
  if (const auto run = root.find("run")) graph.run = run->text(kMaxGraphRunIdLength);
  if (const auto resume = root.find("resume")) graph.resume = resume->boolean();
  if (const auto deadline = root.find("deadline_seconds")) graph.deadline = read_deadline(*deadline);
  if (const auto concurrency = root.find("concurrency")) {
    graph.concurrency = static_cast<unsigned>(concurrency->number(1, kMaxGraphConcurrency));
  }
  return graph;
}

}  // namespace

Result<Graph> graph_from_json(std::string_view text) {
  const auto document = parse_json(text, "the graph");
  if (!document) return fail(document.error());
  Status status;
  Graph graph = read_graph(JsonValue(*document, status));
  if (!status) return fail(status.error());
  return graph;
}

}  // namespace fairlead::wire

#include "edge/inference/inference_edge.h"

#include <cmath>
#include <cstring>

#include "edge/testing/edge_fixture.h"
#include "wire/kernel_task_codec.h"
#include "wire/safetensors.h"

namespace fairlead {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

std::string floats(std::initializer_list<float> values) {
  std::string bytes;
  for (const float value : values) bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
  return bytes;
}

class InferenceEdge : public EdgeTest {
 protected:
  inference::Batches batches_{node_, {.now = [] { return Instant(); }, .after = [](Duration, const auto&) {}}};

  InferenceEdge() {
    serve(inference_edge(node_, batches_));
    node_.add("double");
    node_.signatures["double"] = {
        .inputs = {{.name = "x", .type = ElementType::kF32, .shape = {2, 1}, .bytes = Bytes(8), .buffer = 1}},
        .outputs = {{.name = "y", .type = ElementType::kF32, .shape = {2, 1}, .bytes = Bytes(8), .buffer = 2},
                    {.name = "z", .type = ElementType::kBytes, .bytes = Bytes(3), .buffer = 3}}};
    answer_with({{.buffer = 2, .bytes = floats({2, 4})}, {.buffer = 3, .bytes = "abc"}});
    node_.add("program");
  }

  void answer_with(std::vector<KernelTaskAnswer::Output> outputs) {
    node_.reply = Outcome{.payload = wire::encode(KernelTaskAnswer{.outputs = std::move(outputs)})};
  }
  FakeExchange infer(const json& request, Headers headers = {}) {
    return call("POST", "/v2/models/double/infer", request.dump(), std::move(headers));
  }
  static json of_x(json more) {
    json input{{"name", "x"}, {"datatype", "FP32"}, {"shape", {2, 1}}};
    input.update(more);
    return {{"inputs", {input}}};
  }
  void expect_refused(const json& request, const std::string& text) {
    const FakeExchange answer = infer(request);
    EXPECT_EQ(400U, answer.response->status) << request;
    EXPECT_THAT(answer.json().value("error", ""), HasSubstr(text)) << request;
    EXPECT_TRUE(node_.invoked.empty());
  }
};

TEST_F(InferenceEdge, NumbersGoInAndComeOut) {
  json request = of_x({{"data", {1, 2}}});
  request["id"] = "7";
  const FakeExchange answer = infer(request);
  ASSERT_EQ(200U, answer.response->status) << answer.response->body;
  EXPECT_EQ("application/json", answer.response_header("Content-Type"));
  EXPECT_EQ(answer.json(), json::parse(R"({"model_name": "double", "model_version": "1", "id": "7", "outputs": [
      {"name": "y", "datatype": "FP32", "shape": [2, 1], "data": [2, 4]},
      {"name": "z", "datatype": "UINT8", "shape": [3], "data": [97, 98, 99]}]})"));
  ASSERT_EQ(1U, node_.invoked.size());
  const Invocation& invocation = node_.invoked[0].invocation;
  EXPECT_EQ("double", invocation.function);
  const KernelTaskCall expected{.inputs = {{.buffer = 1, .bytes = floats({1, 2})}}};
  EXPECT_EQ(expected, wire::decode_kernel_task_call(invocation.payload).value());
}

// Its sizes are the call's, and it gets and gives a safetensors file.
class InferenceOfAProgram : public InferenceEdge {
 protected:
  InferenceOfAProgram() {
    node_.signatures["program"] = {.inputs = {{.name = "x", .type = ElementType::kF32, .shape = {kAnySize, 2}}},
                                   .outputs = {{.name = "y", .type = ElementType::kF32, .shape = {kAnySize}}},
                                   .form = CallForm::kSafetensors};
    answer_with_y({3}, floats({2, 4, 6}));
  }
  void answer_with_y(std::vector<std::uint64_t> shape, const std::string& bytes) {
    node_.reply = Outcome{.payload = wire::write_safetensors({{"y", ElementType::kF32, std::move(shape), bytes}})};
  }
  FakeExchange infer(std::vector<std::int64_t> shape, const json& data) {
    const json input{{"name", "x"}, {"datatype", "FP32"}, {"shape", shape}, {"data", data}};
    return call("POST", "/v2/models/program/infer", json{{"inputs", {input}}}.dump(), {});
  }
};

TEST_F(InferenceOfAProgram, TheCallSaysTheSizesThatTheModelLeavesOpen) {
  const FakeExchange answer = infer({3, 2}, {1, 2, 3, 4, 5, 6});
  ASSERT_EQ(200U, answer.response->status) << answer.response->body;
  EXPECT_EQ(answer.json()["outputs"],
            json::parse(R"([{"name": "y", "datatype": "FP32", "shape": [3], "data": [2, 4, 6]}])"));
  const auto file = wire::read_safetensors(node_.invoked.at(0).invocation.payload);
  ASSERT_TRUE(file);
  EXPECT_EQ(file->at(0).bytes, floats({1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(file->at(0).shape, (std::vector<std::uint64_t>{3, 2}));
  answer_with_y({0}, "");
  EXPECT_EQ(infer({0, 2}, json::array()).json()["outputs"][0]["shape"], json({0}));
}

TEST_F(InferenceOfAProgram, WhatItDoesNotLeaveOpenIsRefused) {
  const auto refusal = [&](std::vector<std::int64_t> shape, const json& data) {
    return infer(std::move(shape), data).json().value("error", "");
  };
  EXPECT_THAT(refusal({3, 1}, {1, 2, 3}), HasSubstr("is [3, 1]; the model takes [-1, 2]"));
  EXPECT_THAT(refusal({6}, {1, 2, 3, 4, 5, 6}), HasSubstr("is [6]; the model takes [-1, 2]"));
  EXPECT_THAT(refusal({-1, 2}, {1, 2}), HasSubstr("shape[0]"));
  EXPECT_THAT(refusal({1, 2}, {1, 2, 3}), HasSubstr("data"));
  EXPECT_THAT(refusal({1'000'000, 2}, {1, 2}),
              HasSubstr("is too large: the tensor 'x' has shape [1000000, 2]; a call may have at most 6291456 bytes"));
  EXPECT_THAT(refusal({std::int64_t{1} << 40, 2}, {1, 2}), HasSubstr("is too large"));
  EXPECT_TRUE(node_.invoked.empty());
}

TEST_F(InferenceOfAProgram, AnAnswerThatIsNoneIsAnErrorOfTheFunction) {
  node_.reply = Outcome{.payload = "{}"};
  EXPECT_EQ(500U, infer({1, 2}, {1, 2}).response->status);
  node_.reply = Outcome{.payload = wire::write_safetensors({})};
  const FakeExchange answer = infer({1, 2}, {1, 2});
  EXPECT_EQ(500U, answer.response->status);
  EXPECT_THAT(answer.json().value("error", ""), HasSubstr("lacks the output 'y'"));
}

TEST_F(InferenceOfAProgram, OpenSizesAreMinusOneToClients) {
  const json told = call("GET", "/v2/models/program").json();
  EXPECT_EQ(told["platform"], "fairlead_program");
  EXPECT_EQ(told["inputs"][0]["shape"], json({-1, 2}));
  EXPECT_EQ(call("GET", "/v2/models/program/config").json()["output"][0]["dims"], json({-1}));
}

TEST_F(InferenceEdge, NumbersMayBeNestedAsTheShape) {
  EXPECT_EQ(200U, infer(of_x({{"data", {{1}, {2}}}})).response->status);
}

TEST_F(InferenceEdge, BytesStandBehindTheJson) {
  json request = of_x({{"parameters", {{"binary_data_size", 8}}}});
  request["outputs"] = {{{"name", "z"}, {"parameters", {{"binary_data", true}}}}, {{"name", "y"}}};
  const std::string text = request.dump();
  const FakeExchange answer = call("POST", "/v2/models/double/versions/1/infer", text + floats({1, 2}),
                                   {{"Inference-Header-Content-Length", std::to_string(text.size())}});
  ASSERT_EQ(200U, answer.response->status) << answer.response->body;
  EXPECT_EQ("application/octet-stream", answer.response_header("Content-Type"));
  const std::size_t length = std::stoul(answer.response_header("Inference-Header-Content-Length"));
  const std::string& body = answer.response->body;
  EXPECT_EQ("abc", body.substr(length));
  const json said = json::parse(body.substr(0, length));
  EXPECT_EQ(3, said["outputs"][0]["parameters"]["binary_data_size"]);
  EXPECT_EQ(json({2, 4}), said["outputs"][1]["data"]);
}

TEST_F(InferenceEdge, WithoutNamesEveryOutputComesAsItIsAskedFor) {
  json request = of_x({{"data", {1, 2}}});
  request["parameters"] = {{"binary_data_output", true}};
  const FakeExchange answer = infer(request);
  const std::size_t length = std::stoul(answer.response_header("Inference-Header-Content-Length"));
  EXPECT_EQ(floats({2, 4}) + "abc", answer.response->body.substr(length));
}

TEST_F(InferenceEdge, WhatDoesNotFitTheModelIsRefusedByName) {
  expect_refused(json::array(), "must be an object");
  expect_refused(json::object(), "has no 'inputs'");
  expect_refused({{"inputs", json::array()}}, "inputs lacks the input 'x'");
  expect_refused({{"inputs", {{{"name", "w"}}}}}, "inputs[0].name is 'w', which the model does not have; it has x");
  expect_refused(of_x({{"data", {1}}}), "inputs[0].data has 1 elements; 2 are needed");
  expect_refused(of_x({{"data", {1, "a"}}}), "inputs[0].data[1] is no number");
  expect_refused(of_x({{"datatype", "FP64"}}), "inputs[0].datatype is FP64; the model takes FP32");
  expect_refused(of_x({{"shape", {1, 2}}}), "inputs[0].shape is [1, 2]; the model takes [2, 1]");
  expect_refused(of_x({{"shape", {9223372036854775807, 2}}}), "shape[0] is 9223372036854775807");
  expect_refused(of_x({{"shape", {-1, 1}}}), "inputs[0].shape[0] is -1");
  expect_refused(of_x({{"parameters", {{"binary_data_size", 7}}}}), "binary_data_size is 7; the tensor has 8 bytes");
  expect_refused(of_x({{"parameters", {{"binary_data_size", 8}}}}), "is 8, and 0 bytes are left behind the JSON");
  expect_refused(of_x({{"parameters", {{"shared_memory_region", "r"}}}}), "shared_memory_region is not supported");
  json twice = of_x({{"data", {1, 2}}});
  twice["inputs"].push_back(twice["inputs"][0]);
  expect_refused(twice, "is the input 'x' once more");
  json unknown = of_x({{"data", {1, 2}}});
  unknown["outputs"] = {{{"name", "q"}}};
  expect_refused(unknown, "outputs[0].name is 'q', which the model does not have; it has y, z");
  unknown["outputs"] = {{{"name", "y"}}, {{"name", "y"}}};
  expect_refused(unknown, "outputs[1] is the output 'y' once more");
  unknown["outputs"] = {{{"name", "y"}, {"parameters", {{"classification", 3}}}}};
  expect_refused(unknown, "classification is not supported");
}

TEST_F(InferenceEdge, LengthsThatLieAreRefused) {
  const std::string text = of_x({{"data", {1, 2}}}).dump();
  for (const auto& [length, word] : std::map<std::string, std::string>{{"99999", "the body has"},
                                                                       {"-1", "between 0 and"},
                                                                       {"18446744073709551616", "between 0 and"},
                                                                       {"5", "line 1"}}) {
    const FakeExchange answer =
        call("POST", "/v2/models/double/infer", text, {{"Inference-Header-Content-Length", length}});
    EXPECT_EQ(400U, answer.response->status) << length;
    EXPECT_THAT(answer.json().value("error", ""), HasSubstr(word)) << length;
  }
  const FakeExchange rest = call("POST", "/v2/models/double/infer", text + "1234",
                                 {{"Inference-Header-Content-Length", std::to_string(text.size())}});
  EXPECT_THAT(rest.json().value("error", ""), HasSubstr("leaves 4 bytes behind it"));
  EXPECT_TRUE(node_.invoked.empty());
}

TEST_F(InferenceEdge, CompressedBodiesAreNotTaken) {
  EXPECT_EQ(415U, infer(of_x({{"data", {1, 2}}}), {{"Content-Encoding", "gzip"}}).response->status);
}

TEST_F(InferenceEdge, WhatIsNotFiniteComesAsBytesOnly) {
  answer_with({{.buffer = 2, .bytes = floats({std::nanf(""), 1})}, {.buffer = 3, .bytes = "abc"}});
  const FakeExchange answer = infer(of_x({{"data", {1, 2}}}));
  EXPECT_EQ(409U, answer.response->status);
  EXPECT_THAT(answer.json().value("error", ""), HasSubstr("ask for it with binary_data"));
  json request = of_x({{"data", {1, 2}}});
  request["parameters"] = {{"binary_data_output", true}};
  EXPECT_EQ(200U, infer(request).response->status);
}

TEST_F(InferenceEdge, TheSoonerOfTwoDeadlinesCounts) {
  json request = of_x({{"data", {1, 2}}});
  infer(request);
  EXPECT_FALSE(node_.invoked.back().invocation.deadline_ms);
  request["parameters"] = {{"timeout", 0}};
  infer(request);
  EXPECT_FALSE(node_.invoked.back().invocation.deadline_ms) << "0 is none";
  const auto patience = [this](const json& asked, const std::string& header) {
    const std::int64_t now = wall_clock_ms();
    infer(asked, {{"X-Fairlead-Deadline-Ms", header}});
    return *node_.invoked.back().invocation.deadline_ms - now;
  };
  request["parameters"] = {{"timeout", 3'600'000'000'000 / 1000}};  // an hour
  EXPECT_LT(patience(request, "1000"), 60'000);
  request["parameters"] = {{"timeout", 1'000'000}};
  EXPECT_LT(patience(request, "3600000"), 60'000);
}

TEST_F(InferenceEdge, FailuresHaveTheirStatus) {
  const json request = of_x({{"data", {1, 2}}});
  const auto status = [&](Outcome outcome) {
    node_.reply = std::move(outcome);
    return infer(request).response->status;
  };
  EXPECT_EQ(504U, status({.kind = OutcomeKind::kTimeout}));
  EXPECT_EQ(504U, status({.kind = OutcomeKind::kExpired}));
  EXPECT_EQ(503U, status({.kind = OutcomeKind::kStartFailed}));
  EXPECT_EQ(500U, status({.kind = OutcomeKind::kCrashed, .failure = {.text = "exit status 3"}}));
  EXPECT_EQ(500U, status({.payload = "no answer of a kernel task"}));
  node_.reply = fail(Errc::kResourceExhausted, "the queue is full");
  const FakeExchange full = infer(request);
  EXPECT_EQ(429U, full.response->status);
  EXPECT_EQ("the queue is full", full.json().value("error", ""));
}

TEST_F(InferenceEdge, ModelsAreThoseThatSayWhatTheyTake) {
  EXPECT_EQ(json::parse(R"([{"name": "double", "version": "1", "state": "READY", "reason": ""}])"),
            call("POST", "/v2/repository/index").json());
  const json said = call("GET", "/v2/models/double").json();
  EXPECT_EQ(json::parse(R"([{"name": "x", "datatype": "FP32", "shape": [2, 1]}])"), said["inputs"]);
  EXPECT_EQ(json::parse(R"({"name": "z", "datatype": "UINT8", "shape": [3]})"), said["outputs"][1]);
  EXPECT_EQ(json::parse(R"({"name": "x", "data_type": "TYPE_FP32", "dims": [2, 1]})"),
            call("GET", "/v2/models/double/versions/1/config").json()["input"][0]);
  EXPECT_EQ(json::parse(R"({"name": "double", "ready": true})"), call("GET", "/v2/models/double/ready").json());
  const FakeExchange program = call("GET", "/v2/models/program");
  EXPECT_EQ(400U, program.response->status);
  EXPECT_THAT(program.json().value("error", ""), HasSubstr("it does not say which tensors it takes"));
  EXPECT_EQ(404U, call("GET", "/v2/models/none").response->status);
  EXPECT_EQ("double has no version '2'; it has 1",
            call("GET", "/v2/models/double/versions/2").json().value("error", ""));
}

TEST_F(InferenceEdge, HealthIsJsonForThoseWhoReadIt) {
  EXPECT_EQ(json::parse(R"({"live": true})"), call("GET", "/v2/health/live").json());
  EXPECT_EQ(json::parse(R"({"ready": true})"), call("GET", "/v2/health/ready").json());
  node_.node_status.draining = true;
  EXPECT_EQ(503U, call("GET", "/v2/health/ready").response->status);
  EXPECT_EQ(node_.statuses, 0) << "anybody may ask, and a status of a large node takes milliseconds";
}

TEST_F(InferenceEdge, OtherPathsAreSaidInItsOwnWords) {
  const FakeExchange unknown = call("GET", "/v2/nothing");
  EXPECT_EQ(404U, unknown.response->status);
  EXPECT_THAT(unknown.json().value("error", ""), HasSubstr("there is no such operation"));
  EXPECT_EQ(405U, call("GET", "/v2/models/double/infer").response->status);
}

TEST_F(InferenceEdge, WhatIsLargeIsReadAndWrittenOnAnotherThread) {
  node_.signatures["double"].inputs[0] = {.name = "x", .type = ElementType::kF32, .bytes = Bytes(400'000), .buffer = 1};
  json request{
      {"inputs", {{{"name", "x"}, {"datatype", "FP32"}, {"shape", {100'000}}, {"data", std::vector<int>(100'000)}}}}};
  EXPECT_EQ(200U, infer(request).response->status);
  EXPECT_EQ(1, node_.jobs);
  node_.signatures["double"].outputs[0].bytes = Bytes(400'000);
  node_.signatures["double"].outputs[0].shape = {100'000};
  answer_with({{.buffer = 2, .bytes = std::string(400'000, '\0')}, {.buffer = 3, .bytes = "abc"}});
  EXPECT_EQ(200U, infer(request).response->status);
  EXPECT_EQ(3, node_.jobs);
}

TEST_F(InferenceEdge, TensorsBeyondTheLargestCallAreRefused) {
  node_.signatures["double"].inputs[0] = {.name = "x", .type = ElementType::kF32, .bytes = Bytes(8 << 20), .buffer = 1};
  const std::string text = json{{"inputs",
                                 {{{"name", "x"},
                                   {"datatype", "FP32"},
                                   {"shape", {2 << 20}},
                                   {"parameters", {{"binary_data_size", 8 << 20}}}}}}}
                               .dump();
  const FakeExchange answer = call("POST", "/v2/models/double/infer", text + std::string(8 << 20, 'x'),
                                   {{"Inference-Header-Content-Length", std::to_string(text.size())}});
  EXPECT_EQ(413U, answer.response->status);
  EXPECT_TRUE(node_.invoked.empty());
}

TEST_F(InferenceEdge, WhoLeavesCancels) {
  node_.hold = true;
  const auto exchange = begin("POST", "/v2/models/double/infer", of_x({{"data", {1, 2}}}).dump());
  exchange->disconnected();
  EXPECT_EQ(1, node_.cancelled);
}

}  // namespace
}  // namespace fairlead

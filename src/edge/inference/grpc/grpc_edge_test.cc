#include "edge/inference/grpc/grpc_edge.h"

#include "base/clock.h"
#include "edge/inference/grpc/health.pb.h"
#include "edge/inference/grpc/open_inference.pb.h"
#include "edge/testing/edge_fixture.h"
#include "wire/kernel_task_codec.h"
#include "wire/safetensors.h"

namespace fairlead {
namespace {

using namespace open_inference;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class GrpcEdge : public EdgeTest {
 protected:
  inference::Batches batches_{node_, {.now = [] { return Instant(); }, .after = [](Duration, const auto&) {}}};

  GrpcEdge() {
    serve(grpc_edge(node_, batches_));
    node_.add("double");
    node_.signatures["double"] = {
        .inputs = {{.name = "x", .type = ElementType::kF32, .shape = {2}, .bytes = Bytes(8), .buffer = 1}},
        .outputs = {{.name = "y", .type = ElementType::kC64, .shape = {1}, .bytes = Bytes(8), .buffer = 2}}};
    node_.reply =
        Outcome{.payload = wire::encode(KernelTaskAnswer{.outputs = {{.buffer = 2, .bytes = std::string(8, 'y')}}})};
    node_.add("program");
  }

  FakeExchange ask(const std::string& method, const google::protobuf::MessageLite& message, Headers headers = {}) {
    return call("POST", "/inference.GRPCInferenceService/" + method, message.SerializeAsString(), std::move(headers));
  }
  template <typename Answer>
  Answer answer_to(const std::string& method, const google::protobuf::MessageLite& message) {
    const FakeExchange exchange = ask(method, message);
    EXPECT_EQ(200U, exchange.response->status) << exchange.response->body;
    Answer answer;
    EXPECT_TRUE(answer.ParseFromString(exchange.response->body));
    return answer;
  }
  static ModelRequest named(const std::string& name, const std::string& version = "") {
    ModelRequest request;
    request.set_name(name);
    request.set_version(version);
    return request;
  }
  static ModelInferRequest inference(const std::string& model = "double") {
    ModelInferRequest request;
    request.set_model_name(model);
    auto& x = *request.add_inputs();
    x.set_name("x");
    x.set_datatype("FP32");
    x.add_shape(2);
    request.add_raw_input_contents("12345678");
    return request;
  }
};

TEST_F(GrpcEdge, TellsWhatItIs) {
  EXPECT_TRUE(answer_to<ServerLiveResponse>("ServerLive", ServerLiveRequest()).live());
  EXPECT_TRUE(answer_to<ServerReadyResponse>("ServerReady", ServerReadyRequest()).ready());
  const auto metadata = answer_to<ServerMetadataResponse>("ServerMetadata", ServerMetadataRequest());
  EXPECT_EQ(metadata.name(), "fairlead");
  EXPECT_THAT(metadata.extensions(), ::testing::Not(::testing::Contains("binary_tensor_data")));
}

TEST_F(GrpcEdge, TellsOfModels) {
  EXPECT_TRUE(answer_to<ModelReadyResponse>("ModelReady", named("double", "1")).ready());
  const auto metadata = answer_to<ModelMetadataResponse>("ModelMetadata", named("double"));
  EXPECT_EQ(metadata.outputs(0).datatype(), "FP32");
  EXPECT_THAT(metadata.outputs(0).shape(), ElementsAre(1, 2)) << "real and imaginary part";
  const auto config = answer_to<ModelConfigResponse>("ModelConfig", named("double")).config();
  EXPECT_EQ(config.backend(), "fairlead");
  EXPECT_EQ(config.input(0).data_type(), TYPE_FP32);
  EXPECT_THAT(config.input(0).dims(), ElementsAre(2));
  EXPECT_EQ(404U, ask("ModelReady", named("nobody")).response->status);
  EXPECT_EQ(404U, ask("ModelReady", named("double", "2")).response->status);
  EXPECT_EQ(400U, ask("ModelMetadata", named("program")).response->status);
  const auto index = answer_to<RepositoryIndexResponse>("RepositoryIndex", RepositoryIndexRequest());
  ASSERT_EQ(index.models_size(), 1) << "a program is none";
  EXPECT_EQ(index.models(0).name() + index.models(0).state(), "doubleREADY");
}

TEST_F(GrpcEdge, AnInferenceIsACallOfTheFunction) {
  const auto answer = answer_to<ModelInferResponse>("ModelInfer", inference());
  EXPECT_EQ(answer.model_name(), "double");
  EXPECT_THAT(answer.raw_output_contents(), ElementsAre("yyyyyyyy"));
  ASSERT_EQ(node_.invoked.size(), 1U);
  EXPECT_EQ(node_.invoked[0].invocation.function, "double");
  const auto sent = wire::decode_kernel_task_call(node_.invoked[0].invocation.payload);
  ASSERT_TRUE(sent);
  EXPECT_EQ(sent->inputs[0].bytes, "12345678");
  EXPECT_EQ(node_.invoked[0].invocation.deadline_ms, std::nullopt);
}

TEST_F(GrpcEdge, AProgramSaysByItsTagsWhichTensorsItTakes) {
  node_.signatures["program"] = {.inputs = {{.name = "x", .type = ElementType::kF32, .shape = {kAnySize}}},
                                 .outputs = {{.name = "y", .type = ElementType::kF32, .shape = {1, kAnySize}}},
                                 .form = CallForm::kSafetensors};
  node_.reply = Outcome{.payload = wire::write_safetensors({{"y", ElementType::kF32, {1, 2}, "yyyyYYYY"}})};
  const auto metadata = answer_to<ModelMetadataResponse>("ModelMetadata", named("program"));
  EXPECT_EQ(metadata.platform(), "fairlead_program");
  EXPECT_THAT(metadata.outputs(0).shape(), ElementsAre(1, -1));
  EXPECT_THAT(answer_to<ModelConfigResponse>("ModelConfig", named("program")).config().input(0).dims(),
              ElementsAre(-1));
  const auto answer = answer_to<ModelInferResponse>("ModelInfer", inference("program"));
  EXPECT_THAT(answer.outputs(0).shape(), ElementsAre(1, 2));
  EXPECT_THAT(answer.raw_output_contents(), ElementsAre("yyyyYYYY"));
  EXPECT_EQ(wire::read_safetensors(node_.invoked.at(0).invocation.payload)->at(0).bytes, "12345678");
  ModelInferRequest wrong = inference("program");
  wrong.mutable_inputs(0)->set_shape(0, 3);
  EXPECT_THAT(ask("ModelInfer", wrong).response->body, HasSubstr("has 8 bytes; the tensor 'x' has 12"));
  wrong.mutable_inputs(0)->set_shape(0, -1);
  EXPECT_THAT(ask("ModelInfer", wrong).response->body, HasSubstr("the shape of 'x' is [-1]; the model takes [-1]"));
  wrong.mutable_inputs(0)->set_shape(0, std::int64_t{1} << 60);
  EXPECT_THAT(ask("ModelInfer", wrong).response->body, HasSubstr("a call may have at most"));
}

TEST_F(GrpcEdge, TheSoonestDeadlineCounts) {
  ModelInferRequest request = inference();
  (*request.mutable_parameters())["timeout"].set_int64_param(3'600'000'000);  // an hour
  const std::int64_t before = wall_clock_ms();
  ask("ModelInfer", request, {{"grpc-timeout", "60S"}, {"X-Fairlead-Deadline-Ms", "120000"}});
  ASSERT_EQ(node_.invoked.size(), 1U);
  EXPECT_GE(node_.invoked[0].invocation.deadline_ms, before + 60'000);
  EXPECT_LE(node_.invoked[0].invocation.deadline_ms, wall_clock_ms() + 60'000);
  const FakeExchange wrong = ask("ModelInfer", inference(), {{"grpc-timeout", "soon"}});
  EXPECT_EQ(400U, wrong.response->status);
  EXPECT_THAT(wrong.response->body, HasSubstr("grpc-timeout is 'soon'"));
}

TEST_F(GrpcEdge, FailuresAreTold) {
  EXPECT_EQ(404U, ask("ModelInfer", inference("nobody")).response->status);
  EXPECT_EQ(400U, ask("ModelInfer", inference("program")).response->status);
  const FakeExchange none = call("POST", "/inference.GRPCInferenceService/ModelInfer", "\xff\xff");
  EXPECT_EQ(400U, none.response->status);
  EXPECT_EQ(none.response->body, "the message is no ModelInferRequest");
  EXPECT_EQ(400U, call("POST", "/inference.GRPCInferenceService/ModelReady", "\xff\xff").response->status);
  EXPECT_TRUE(node_.invoked.empty());
  node_.reply = Outcome{.kind = OutcomeKind::kTimeout};
  EXPECT_EQ(504U, ask("ModelInfer", inference()).response->status);
  node_.reply = Outcome{.kind = OutcomeKind::kFunctionError, .failure = {.type = "Unhandled", .text = "no"}};
  const FakeExchange failed = ask("ModelInfer", inference());
  EXPECT_EQ(500U, failed.response->status);
  EXPECT_EQ(failed.response->body, "Unhandled: no");
}

TEST_F(GrpcEdge, AMethodThatIsNotThereIsUnimplemented) {
  const FakeExchange unknown = ask("ModelStreamInfer", ModelRequest());
  EXPECT_EQ(unknown.response_header("grpc-status"), "12");
  EXPECT_THAT(unknown.response->body, HasSubstr("ModelStreamInfer: there is no such method"));
}

TEST_F(GrpcEdge, HealthIsThatOfTheNode) {
  grpc_health::HealthCheckRequest request;
  const auto check = [&] { return call("POST", "/grpc.health.v1.Health/Check", request.SerializeAsString()); };
  grpc_health::HealthCheckResponse answer;
  ASSERT_TRUE(answer.ParseFromString(check().response->body));
  EXPECT_EQ(answer.status(), grpc_health::HealthCheckResponse::SERVING);
  request.set_service("inference.GRPCInferenceService");
  EXPECT_EQ(200U, check().response->status);
  node_.node_status.draining = true;
  ASSERT_TRUE(answer.ParseFromString(check().response->body));
  EXPECT_EQ(answer.status(), grpc_health::HealthCheckResponse::NOT_SERVING);
  EXPECT_FALSE(answer_to<ServerReadyResponse>("ServerReady", ServerReadyRequest()).ready());
  request.set_service("another");
  EXPECT_EQ(404U, check().response->status);
}

}  // namespace
}  // namespace fairlead

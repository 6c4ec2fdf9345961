#include "edge/lambda/lambda_functions.h"

#include "base/base64.h"
#include "edge/lambda/lambda_json.h"
#include "edge/testing/edge_fixture.h"

namespace fairlead {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;

const std::string kFunctions = "/2015-03-31/functions";
const std::string kArn = "arn%3Aaws%3Alambda%3Aus-east-1%3A000000000000%3Afunction%3Af";
const std::string kBad = "InvalidParameterValueException";

class LambdaFunctions : public EdgeTest {
 protected:
  LambdaFunctions() { serve(lambda_edge(node_)); }

  static json new_function() {
    return {{"FunctionName", "f"}, {"Role", "r"}, {"Code", {{"ZipFile", base64_encode("zip bytes")}}}};
  }
  FakeExchange create(const json& body, bool is_local = true) {
    return call("POST", kFunctions, body.dump(), {}, is_local);
  }
  FakeExchange create_with(const char* field, const json& value) {
    json body = new_function();
    body[field] = value;
    return create(body);
  }
};

TEST_F(LambdaFunctions, CreateReturnsTheConfiguration) {
  json body = new_function();
  body["Description"] = "d";
  body["Handler"] = "main.handler";
  body["MemorySize"] = 256;
  body["Timeout"] = 30;
  body["EphemeralStorage"] = {{"Size", 1024}};
  body["Environment"] = {{"Variables", {{"A", "1"}}}};
  body["Tags"] = {{"gpu:weight", "2"}};
  body["VpcConfig"] = json::object();
  const auto exchange = create(body);
  ASSERT_EQ(201u, exchange.response->status) << exchange.response->body;
  const json answer = exchange.json();
  EXPECT_EQ("f", answer["FunctionName"]);
  EXPECT_EQ("arn:aws:lambda:us-east-1:000000000000:function:f", answer["FunctionArn"]);
  EXPECT_EQ("Active", answer["State"]);
  EXPECT_EQ("Successful", answer["LastUpdateStatus"]);
  EXPECT_EQ("$LATEST", answer["Version"]);
  EXPECT_EQ("Zip", answer["PackageType"]);
  EXPECT_EQ("provided.al2023", answer["Runtime"]);
  EXPECT_EQ(256, answer["MemorySize"]);
  EXPECT_EQ(30, answer["Timeout"]);
  EXPECT_EQ(1024, answer["EphemeralStorage"]["Size"]);
  EXPECT_EQ("1", answer["Environment"]["Variables"]["A"]);
  EXPECT_EQ(7, answer["CodeSize"]);
  EXPECT_EQ("c2hh", answer["CodeSha256"]);
  EXPECT_EQ("2023-11-14T22:13:20.123+0000", answer["LastModified"]);
  EXPECT_EQ("zip bytes", node_.last_code.zip);
  EXPECT_THAT(node_.functions["f"].config.tags, ElementsAre(Pair("gpu:weight", "2")));
}

TEST_F(LambdaFunctions, CreateRefusesWhatItCannotServe) {
  expect_error(create_with("PackageType", "Tar"), 400, kBad, "PackageType is 'Tar'; it must be Zip or Image");
  expect_error(create_with("Layers", {"arn"}), 400, kBad, "Layers");
  expect_error(create_with("Architectures", {"riscv"}), 400, kBad, "'riscv'");
  expect_error(create_with("Code", {{"ImageUri", "x"}}), 400, kBad, "Code.ImageUri");
  expect_error(create_with("Code", {{"S3Bucket", "x"}}), 400, kBad, "Code.S3Bucket");
  EXPECT_TRUE(node_.functions.empty());
}

TEST_F(LambdaFunctions, CreateRefusesWrongTypes) {
  expect_error(create_with("MemorySize", "256"), 400, kBad, "MemorySize must be an integer");
  expect_error(create_with("Timeout", 1.5), 400, kBad, "Timeout must be an integer");
  expect_error(create_with("Timeout", 99999999999), 400, kBad, "Timeout must be an integer");
  expect_error(create_with("Environment", {{"Variables", {{"A", 1}}}}), 400, kBad,
               "Environment.Variables must be an object of strings");
  expect_error(create_with("Environment", "A=1"), 400, kBad, "Environment must be an object");
  expect_error(create_with("Tags", json::array()), 400, kBad, "Tags must be an object of strings");
  expect_error(create_with("FunctionName", 1), 400, kBad, "FunctionName must be a string");
  expect_error(create_with("FunctionName", nullptr), 400, kBad, "FunctionName is missing");
  expect_error(create_with("FunctionName", "a b"), 400, kBad, "'a b'");
  expect_error(create_with("Code", nullptr), 400, kBad, "Code is missing");
  expect_error(create_with("Code", json::object()), 400, kBad, "Code.ZipFile");
  expect_error(create_with("Code", {{"ZipFile", "not base64!"}}), 400, kBad, "Code.ZipFile");
  expect_error(create_with("Architectures", "x86_64"), 400, kBad, "Architectures must be a list of strings");
  expect_error(create_with("MemorySize", 1), 400, kBad, "MemorySize is 1");
}

TEST_F(LambdaFunctions, CreateRefusesBodiesThatAreNotAnObject) {
  expect_error(call("POST", kFunctions, "{"), 400, kBad, "not valid JSON");
  expect_error(call("POST", kFunctions, "[]"), 400, kBad, "JSON object");
  expect_error(call("POST", kFunctions, "{\"FunctionName\":\"\xff\"}"), 400, kBad, "UTF-8");
  expect_error(call("POST", kFunctions, std::string(100'000, '[')), 400, kBad, "nested deeper than 64 levels");
}

TEST_F(LambdaFunctions, CreateTwiceIsAConflict) {
  EXPECT_EQ(201u, create(new_function()).response->status);
  expect_error(create(new_function()), 409, "ResourceConflictException", "already exist");
}

TEST_F(LambdaFunctions, OnlyLocalClientsDeployFolders) {
  json body = new_function();
  body["Code"] = {{"Folder", "/srv/f"}};
  expect_error(create(body, false), 400, kBad, "Code.Folder is for operators on the node's own machine");
  EXPECT_EQ(201u, create(body, true).response->status);
  EXPECT_EQ("/srv/f", node_.last_code.folder);

  Router strict{document_errors()};
  ASSERT_TRUE(strict.add(lambda_edge(node_, {.allow_code_folder = false})));
  auto exchange = std::make_shared<FakeExchange>();
  exchange->method_text = "PUT";
  exchange->target_text = kFunctions + "/f/code";
  exchange->body_text = R"({"Folder": "/srv/f"})";
  strict.dispatch(net::HttpExchange(exchange));
  EXPECT_EQ(400u, exchange->response->status);
}

TEST_F(LambdaFunctions, APackageThatIsLargeIsReadOnAnotherThread) {
  const std::string zip(300 << 10, 'z');
  json body = new_function();
  EXPECT_EQ(201u, create(body).response->status);
  EXPECT_EQ(0, node_.jobs);
  body["FunctionName"] = "g";
  body["Code"]["ZipFile"] = base64_encode(zip);
  EXPECT_EQ(201u, create(body).response->status);
  EXPECT_EQ(1, node_.jobs);
  EXPECT_EQ(zip, node_.last_code.zip);
  body["Code"]["ZipFile"] = base64_encode(zip) + "!";
  expect_error(create(body), 400, kBad, "Code.ZipFile");
  const json code{{"ZipFile", base64_encode(zip + "2")}};
  EXPECT_EQ(200u, call("PUT", kFunctions + "/g/code", code.dump()).response->status);
  EXPECT_EQ(3, node_.jobs);
  EXPECT_EQ(zip + "2", node_.last_code.zip);
}

TEST_F(LambdaFunctions, ARevisionThatIsReplacedWhileTheCodeIsReadIsAConflict) {
  node_.add("f");
  const json code{{"ZipFile", base64_encode(std::string(300 << 10, 'z'))}, {"RevisionId", "revision-1"}};
  node_.meanwhile = [this] { node_.functions["f"].revision_id = "revision-2"; };
  expect_error(call("PUT", kFunctions + "/f/code", code.dump()), 409, "ResourceConflictException",
               "RevisionId is 'revision-1', the function's is 'revision-2'");
  EXPECT_EQ("", node_.last_code.zip);
}

TEST(ReadCode, AZipThatIsTooLargeIsRefused) {
  const std::string text(kMaxZippedCodeBytes / 3 * 4 + 4, 'A');
  EXPECT_LT(text.size(), kMaxRequestBytes);
  const auto code = read_code({{"ZipFile", text}}, "Code.", PackageType::kZip, false);
  ASSERT_FALSE(code);
  EXPECT_EQ(Errc::kTooLarge, code.error().code);
  EXPECT_THAT(code.error().message, HasSubstr("at most 52428800"));
}

TEST_F(LambdaFunctions, AnAcceleratorIsAMemoryTag) {
  EXPECT_EQ(201u, create_with("AcceleratorConfig", {{"AcceleratorMemorySize", 3}}).response->status);
  EXPECT_EQ("3072", node_.functions["f"].config.tags["gpu:memory-mib"]);
}

TEST_F(LambdaFunctions, GetReturnsEverything) {
  node_.add("f", {.tags = {{"a", "b"}}});
  node_.functions["f"].reserved_concurrency = 3;
  const json answer = call("GET", kFunctions + "/f").json();
  EXPECT_EQ("f", answer["Configuration"]["FunctionName"]);
  EXPECT_EQ("b", answer["Tags"]["a"]);
  EXPECT_EQ(3, answer["Concurrency"]["ReservedConcurrentExecutions"]);
  EXPECT_EQ("f", call("GET", kFunctions + "/" + kArn).json()["Configuration"]["FunctionName"]);
  EXPECT_EQ("f", call("GET", kFunctions + "/f/configuration").json()["FunctionName"]);
  expect_error(call("GET", kFunctions + "/g"), 404, "ResourceNotFoundException", "g");
  expect_error(call("GET", kFunctions + "/f?Qualifier=2"), 404, "ResourceNotFoundException", "f:2");
}

TEST_F(LambdaFunctions, ListPagesByMarker) {
  for (const char* name : {"a", "b", "c"}) node_.add(name);
  const auto names = [](const json& page) {
    std::vector<std::string> result;
    for (const json& function : page["Functions"]) result.push_back(function["FunctionName"]);
    return result;
  };
  json page = call("GET", kFunctions + "/?MaxItems=2").json();
  EXPECT_THAT(names(page), ElementsAre("a", "b"));
  EXPECT_EQ("b", page["NextMarker"]);
  node_.functions.erase("b");  // between the pages
  page = call("GET", kFunctions + "?MaxItems=2&Marker=b").json();
  EXPECT_THAT(names(page), ElementsAre("c"));
  EXPECT_FALSE(page.contains("NextMarker"));
  EXPECT_THAT(names(call("GET", kFunctions).json()), ElementsAre("a", "c"));
  for (const char* bad : {"0", "10001", "x", "-1"}) {
    expect_error(call("GET", kFunctions + "?MaxItems=" + bad), 400, kBad, "between 1 and 10000");
  }
}

TEST_F(LambdaFunctions, UpdateCodeReplacesThePackage) {
  node_.add("f");
  const std::string body = json{{"ZipFile", base64_encode("new")}}.dump();
  EXPECT_EQ(200u, call("PUT", kFunctions + "/f/code", body).response->status);
  EXPECT_EQ("new", node_.last_code.zip);
  expect_error(call("PUT", kFunctions + "/g/code", body), 404, "ResourceNotFoundException", "g");
  expect_error(call("PUT", kFunctions + "/f/code", "{}"), 400, kBad, "ZipFile");
  expect_error(call("PUT", kFunctions + "/f/code", "{"), 400, kBad, "JSON");
  expect_error(call("PUT", kFunctions + "/f/code", R"({"ImageUri":"x"})"), 400, kBad, "ImageUri");
  expect_error(call("PUT", kFunctions + "/f/code", R"({"RevisionId":"old","ZipFile":"bmV3"})"), 409,
               "ResourceConflictException", "'revision-1'");
}

TEST_F(LambdaFunctions, ADryUpdateChangesNothing) {
  node_.add("f");
  const json body{{"ZipFile", base64_encode("new")}, {"DryRun", true}};
  EXPECT_EQ(200u, call("PUT", kFunctions + "/f/code", body.dump()).response->status);
  EXPECT_EQ("", node_.last_code.zip);
}

TEST_F(LambdaFunctions, UpdateConfigurationChangesOnlyWhatIsNamed) {
  node_.add("f", {.description = "old", .memory_mib = 256, .environment = {{"A", "1"}}, .tags = {{"t", "1"}}});
  const auto exchange =
      call("PUT", kFunctions + "/f/configuration", R"({"Timeout": 5, "Environment": {"Variables": {"B": "2"}}})");
  ASSERT_EQ(200u, exchange.response->status);
  const FunctionConfig& config = node_.functions["f"].config;
  EXPECT_EQ("old", config.description);
  EXPECT_EQ(256, config.memory_mib);
  EXPECT_EQ(5, config.timeout_seconds);
  EXPECT_THAT(config.environment, ElementsAre(Pair("B", "2")));
  EXPECT_THAT(config.tags, ElementsAre(Pair("t", "1")));
  expect_error(call("PUT", kFunctions + "/f/configuration", R"({"Timeout": 901})"), 400, kBad, "Timeout is 901");
  expect_error(call("PUT", kFunctions + "/f/configuration", R"({"RevisionId": "x"})"), 409, "ResourceConflictException",
               "RevisionId is 'x'");
  expect_error(call("PUT", kFunctions + "/g/configuration", "{}"), 404, "ResourceNotFoundException", "g");
}

TEST_F(LambdaFunctions, DeleteIs204) {
  node_.add("f");
  EXPECT_EQ(204u, call("DELETE", kFunctions + "/f").response->status);
  expect_error(call("DELETE", kFunctions + "/f"), 404, "ResourceNotFoundException", "f");
}

TEST_F(LambdaFunctions, TagsAreMergedAndRemoved) {
  node_.add("f", {.tags = {{"a", "1"}, {"b", "2"}}});
  const std::string tags = "/2017-03-31/tags/" + kArn;
  EXPECT_EQ(204u, call("POST", tags, R"({"Tags": {"b": "3", "c": "4"}})").response->status);
  EXPECT_EQ((json{{"a", "1"}, {"b", "3"}, {"c", "4"}}), call("GET", tags).json()["Tags"]);
  EXPECT_EQ(204u, call("DELETE", tags + "?tagKeys=a&tagKeys=c").response->status);
  EXPECT_THAT(node_.functions["f"].config.tags, ElementsAre(Pair("b", "3")));
  expect_error(call("POST", tags, "{}"), 400, kBad, "Tags is missing");
  expect_error(call("POST", tags, R"({"Tags": {"aws:x": "1"}})"), 400, kBad, "reserved");
  expect_error(call("GET", "/2017-03-31/tags/arn%3Aaws%3As3%3A%3A%3Abucket"), 400, kBad, "bucket");
}

TEST_F(LambdaFunctions, ReservedConcurrencyIsSetReadAndCleared) {
  node_.add("f");
  EXPECT_EQ(json::object(), call("GET", "/2019-09-30/functions/f/concurrency").json());
  const std::string path = "/2017-10-31/functions/f/concurrency";
  EXPECT_EQ(2, call("PUT", path, R"({"ReservedConcurrentExecutions": 2})").json()["ReservedConcurrentExecutions"]);
  EXPECT_EQ(2, call("GET", "/2019-09-30/functions/f/concurrency").json()["ReservedConcurrentExecutions"]);
  EXPECT_EQ(204u, call("DELETE", path).response->status);
  EXPECT_FALSE(node_.functions["f"].reserved_concurrency);
  for (const char* bad :
       {R"({"ReservedConcurrentExecutions": -1})", R"({"ReservedConcurrentExecutions": "2"})", "{}"}) {
    expect_error(call("PUT", path, bad), 400, kBad, "ReservedConcurrentExecutions must be");
  }
  expect_error(call("PUT", "/2017-10-31/functions/g/concurrency", R"({"ReservedConcurrentExecutions": 1})"), 404,
               "ResourceNotFoundException", "g");
}

TEST_F(LambdaFunctions, AccountSettingsCountFunctions) {
  node_.add("f");
  node_.add("g");
  const json answer = call("GET", "/2016-08-19/account-settings/").json();
  EXPECT_EQ(2, answer["AccountUsage"]["FunctionCount"]);
  EXPECT_EQ(14, answer["AccountUsage"]["TotalCodeSize"]);
  EXPECT_EQ(kMaxZippedCodeBytes, answer["AccountLimit"]["CodeSizeZipped"]);
}

json new_image() {
  return {{"FunctionName", "f"},
          {"Role", "r"},
          {"PackageType", "Image"},
          {"Code", {{"ImageUri", "quay.io/team/app:1.2"}}},
          {"ImageConfig", {{"EntryPoint", {"python3", "-m"}}, {"Command", {"a.b"}}, {"WorkingDirectory", "/w"}}}};
}

TEST_F(LambdaFunctions, AnImageIsReportedAsLambdaDoes) {
  const auto created = create(new_image());
  ASSERT_EQ(201u, created.response->status) << created.response->body;
  EXPECT_EQ("quay.io/team/app:1.2", node_.last_code.image);
  FunctionRecord& record = node_.functions["f"];
  EXPECT_THAT(record.config.image_config.entry_point, ElementsAre("python3", "-m"));
  record.image = FunctionImage{.uri = "quay.io/team/app:1.2", .resolved_uri = "quay.io/team/app@sha256:0"};
  const json answer = call("GET", kFunctions + "/f", "").json();
  EXPECT_EQ("Image", answer["Configuration"]["PackageType"]);
  EXPECT_FALSE(answer["Configuration"].contains("Handler"));
  EXPECT_FALSE(answer["Configuration"].contains("Runtime"));
  const json& config = answer["Configuration"]["ImageConfigResponse"]["ImageConfig"];
  EXPECT_EQ(json({"python3", "-m"}), config["EntryPoint"]);
  EXPECT_EQ(json({"a.b"}), config["Command"]);
  EXPECT_EQ("/w", config["WorkingDirectory"]);
  EXPECT_EQ("quay.io/team/app:1.2", answer["Code"]["ImageUri"]);
  EXPECT_EQ("quay.io/team/app@sha256:0", answer["Code"]["ResolvedImageUri"]);
}

TEST_F(LambdaFunctions, AnImageIsRefusedWithWhatOnlyAPackageHas) {
  const auto refuse = [&](const char* field, const json& value, const std::string& reason) {
    json body = new_image();
    body[field] = value;
    expect_error(create(body), 400, kBad, reason);
  };
  refuse("Handler", "a.b", "Handler is set, but PackageType is Image");
  refuse("Runtime", "provided", "Runtime is set, but PackageType is Image");
  refuse("Code", {{"ZipFile", "AA=="}}, "Code.ZipFile is set, but PackageType is Image");
  refuse("Code", json::object(), "Code.ImageUri is empty");
  refuse("Code", {{"ImageUri", "UPPER"}}, "Code.ImageUri is 'UPPER'");
  refuse("Code", {{"ImageUri", 5}}, "Code.ImageUri must be a string");
  refuse("ImageConfig", {{"Command", "a.b"}}, "ImageConfig.Command must be a list of strings");
  refuse("ImageConfig", "x", "ImageConfig must be an object");
  EXPECT_TRUE(node_.functions.empty());
}

TEST_F(LambdaFunctions, ALayoutIsForClientsOfTheNodesMachine) {
  json body = new_image();
  body["Code"] = {{"ImageUri", "oci:/srv/layout:1"}};
  expect_error(create(body, false), 400, kBad, "Code.ImageUri is 'oci:/srv/layout:1': a folder is for clients");
  EXPECT_EQ(201u, create(body).response->status);
  EXPECT_EQ("oci:/srv/layout:1", node_.last_code.image);
}

TEST_F(LambdaFunctions, AFunctionsPackageTypeStays) {
  node_.add("zip");
  FunctionConfig image;
  image.package_type = PackageType::kImage;
  node_.add("image", image);
  expect_error(call("PUT", kFunctions + "/zip/code", R"({"ImageUri":"a:b"})"), 400, kBad,
               "ImageUri is set, but PackageType is Zip");
  expect_error(call("PUT", kFunctions + "/image/code", R"({"ZipFile":"AA=="})"), 400, kBad,
               "ZipFile is set, but PackageType is Image");
  EXPECT_EQ(200u, call("PUT", kFunctions + "/image/code", R"({"ImageUri":"a:b"})").response->status);
  EXPECT_EQ("a:b", node_.last_code.image);
}

}  // namespace
}  // namespace fairlead

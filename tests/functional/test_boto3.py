"""AWS's own SDK drives the node: every call a user of boto3 would make."""

import io
import json
import base64
import pathlib
import zipfile

import pytest

boto3 = pytest.importorskip("boto3", reason="boto3 is not installed (PyPI out of reach)")
from botocore import UNSIGNED  # noqa: E402
from botocore.config import Config  # noqa: E402
from botocore.exceptions import ClientError  # noqa: E402

from conftest import BUILD, MISBEHAVE  # noqa: E402


def zipped(files):
    """files: {name: (bytes, mode)}"""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, (content, mode) in files.items():
            entry = zipfile.ZipInfo(name)
            entry.external_attr = mode << 16
            archive.writestr(entry, content)
    return buffer.getvalue()


def misbehave_zip():
    return zipped({"bootstrap": ((MISBEHAVE / "bootstrap").read_bytes(), 0o755)})


@pytest.fixture(scope="module")
def client(shared_node):
    return boto3.client("lambda", endpoint_url=shared_node.endpoint, region_name="us-east-1",
                        config=Config(signature_version=UNSIGNED, retries={"max_attempts": 0}, read_timeout=60))


@pytest.fixture
def function(client):
    client.create_function(FunctionName="mirror", Role="", Runtime="provided.al2023", Handler="bootstrap",
                           Code={"ZipFile": misbehave_zip()}, Timeout=20, Tags={"gpu:weight": "2"})
    client.get_waiter("function_active_v2").wait(FunctionName="mirror")
    yield "mirror"
    client.delete_function(FunctionName="mirror")


def invoke(client, **arguments):
    answer = client.invoke(**arguments)
    return answer, answer["Payload"].read()


def test_a_created_function_answers(client, function):
    answer, payload = invoke(client, FunctionName=function, Payload=json.dumps({"x": 1}))
    assert answer["StatusCode"] == 200 and answer["ExecutedVersion"] == "$LATEST"
    assert json.loads(payload) == {"x": 1}


def test_its_arn_and_qualifier_name_it_too(client, function):
    arn = client.get_function(FunctionName=function)["Configuration"]["FunctionArn"]
    for name in (arn, f"{arn}:$LATEST", f"{function}:$LATEST"):
        assert invoke(client, FunctionName=name, Payload=b"{}")[0]["StatusCode"] == 200


def test_get_and_list_show_what_was_created(client, function):
    configuration = client.get_function_configuration(FunctionName=function)
    assert configuration["Timeout"] == 20 and configuration["State"] == "Active"
    assert configuration["CodeSize"] > 0 and configuration["CodeSha256"]
    assert function in [entry["FunctionName"] for entry in client.list_functions()["Functions"]]


def test_log_tail_comes_with_the_answer(client, function):
    answer, _ = invoke(client, FunctionName=function, LogType="Tail", Payload=json.dumps({"do": "flood", "lines": 3}))
    log = base64.b64decode(answer["LogResult"]).decode()
    assert "flood xxx" in log and "REPORT RequestId:" in log


def test_an_error_of_the_function_is_marked_and_carried(client, function):
    answer, payload = invoke(client, FunctionName=function, Payload=json.dumps({"do": "error"}))
    assert answer["StatusCode"] == 200 and answer["FunctionError"] == "Unhandled"
    assert json.loads(payload) == {"errorMessage": "asked to", "errorType": "Asked"}


def test_dry_run_runs_nothing(client, function):
    assert client.invoke(FunctionName=function, InvocationType="DryRun")["StatusCode"] == 204


def test_update_configuration_reaches_the_next_call(client, function):
    client.update_function_configuration(FunctionName=function, Environment={"Variables": {"COLOUR": "green"}})
    client.get_waiter("function_updated").wait(FunctionName=function)
    _, payload = invoke(client, FunctionName=function, Payload=json.dumps({"do": "look"}))
    assert json.loads(payload)["environment"]["COLOUR"] == "green"


def test_update_code_reaches_the_next_call(client, function):
    before = client.get_function_configuration(FunctionName=function)["CodeSha256"]
    changed = (MISBEHAVE / "bootstrap").read_bytes().replace(b"return json.dumps(event)", b"return '\"new\"'")
    client.update_function_code(FunctionName=function, ZipFile=zipped({"bootstrap": (changed, 0o755)}))
    assert client.get_function_configuration(FunctionName=function)["CodeSha256"] != before
    assert invoke(client, FunctionName=function, Payload=b"{}")[1] == b'"new"'


def test_tags(client, function):
    arn = client.get_function(FunctionName=function)["Configuration"]["FunctionArn"]
    client.tag_resource(Resource=arn, Tags={"team": "ocean"})
    assert client.list_tags(Resource=arn)["Tags"] == {"gpu:weight": "2", "team": "ocean"}
    client.untag_resource(Resource=arn, TagKeys=["team"])
    assert client.list_tags(Resource=arn)["Tags"] == {"gpu:weight": "2"}


def test_reserved_concurrency_of_zero_refuses_every_call(client, function):
    client.put_function_concurrency(FunctionName=function, ReservedConcurrentExecutions=0)
    assert client.get_function_concurrency(FunctionName=function)["ReservedConcurrentExecutions"] == 0
    with pytest.raises(client.exceptions.TooManyRequestsException):
        client.invoke(FunctionName=function)
    client.delete_function_concurrency(FunctionName=function)
    assert client.invoke(FunctionName=function)["StatusCode"] == 200


def test_errors_have_the_types_of_the_sdk(client, function):
    with pytest.raises(client.exceptions.ResourceNotFoundException):
        client.invoke(FunctionName="nobody")
    with pytest.raises(client.exceptions.ResourceConflictException):
        client.create_function(FunctionName=function, Role="", Runtime="provided.al2023", Handler="bootstrap",
                               Code={"ZipFile": misbehave_zip()})
    with pytest.raises(client.exceptions.InvalidParameterValueException) as refused:
        client.update_function_configuration(FunctionName=function, Timeout=901)
    assert "901" in str(refused.value) and "900" in str(refused.value)


@pytest.mark.parametrize("name", ["bad name!", "a" * 65, "..", "x/y"])
def test_bad_names_are_refused(client, name):
    with pytest.raises(ClientError) as refused:
        client.create_function(FunctionName=name, Role="", Runtime="provided.al2023", Handler="bootstrap",
                               Code={"ZipFile": misbehave_zip()})
    assert refused.value.response["ResponseMetadata"]["HTTPStatusCode"] == 400


@pytest.mark.parametrize("archive, said", [
    (b"not a zip", "zip"),
    (zipped({"main": (b"", 0o755)}), "bootstrap"),
    (zipped({"bootstrap": (b"", 0o755), "../escape": (b"", 0o644)}), "../escape"),
])
def test_bad_archives_are_refused_by_name(client, archive, said):
    with pytest.raises(client.exceptions.InvalidParameterValueException) as refused:
        client.create_function(FunctionName="archive", Role="", Runtime="provided.al2023", Handler="bootstrap",
                               Code={"ZipFile": archive})
    assert said in str(refused.value)
    with pytest.raises(client.exceptions.ResourceNotFoundException):
        client.get_function(FunctionName="archive")


def test_a_sample_function_runs_its_kernels_from_a_zip(client):
    program = pathlib.Path(BUILD / "functions/fft/bootstrap").read_bytes()
    client.create_function(FunctionName="fft-zip", Role="", Runtime="provided.al2023", Handler="bootstrap",
                           Code={"ZipFile": zipped({"bootstrap": (program, 0o755)})})
    answer, payload = invoke(client, FunctionName="fft-zip", Payload=b"{}")
    assert "FunctionError" not in answer, payload
    assert json.loads(payload)["function"] == "fft"
    client.delete_function(FunctionName="fft-zip")


def test_how_often_events_are_tried_is_set_as_on_lambda(client, function):
    with pytest.raises(client.exceptions.ResourceNotFoundException):
        client.get_function_event_invoke_config(FunctionName=function)
    put = client.put_function_event_invoke_config(FunctionName=function, MaximumRetryAttempts=0,
                                                  MaximumEventAgeInSeconds=60)
    got = client.get_function_event_invoke_config(FunctionName=function, Qualifier="$LATEST")
    for answer in (put, got):
        assert (answer["MaximumRetryAttempts"], answer["MaximumEventAgeInSeconds"]) == (0, 60)
        assert answer["FunctionArn"].endswith(":function:mirror:$LATEST") and answer["LastModified"].year >= 2024
    updated = client.update_function_event_invoke_config(FunctionName=function, MaximumRetryAttempts=1)
    assert (updated["MaximumRetryAttempts"], updated["MaximumEventAgeInSeconds"]) == (1, 60)
    listed = client.list_function_event_invoke_configs(FunctionName=function)["FunctionEventInvokeConfigs"]
    assert [config["MaximumRetryAttempts"] for config in listed] == [1]
    with pytest.raises(client.exceptions.InvalidParameterValueException):
        client.put_function_event_invoke_config(FunctionName=function, DestinationConfig={
            "OnFailure": {"Destination": "arn:aws:sqs:us-east-1:000000000000:queue"}})
    client.delete_function_event_invoke_config(FunctionName=function)
    with pytest.raises(client.exceptions.ResourceNotFoundException):
        client.get_function_event_invoke_config(FunctionName=function)

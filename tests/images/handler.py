"""A Lambda handler for the tests; knows nothing of where it runs."""

import os

calls = 0


def handler(event, context):
    global calls
    calls += 1
    if "raise" in event:
        raise ValueError(event["raise"])
    return {
        "number": event["number"] + 1,
        "calls": calls,
        "function_name": context.function_name,
        "memory": os.environ["AWS_LAMBDA_FUNCTION_MEMORY_SIZE"],
        "remaining_ms": context.get_remaining_time_in_millis(),
    }

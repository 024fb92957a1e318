"""lovia's context compaction as a policy; see python_peer.mjs for the protocol.

Argument: the context window. Everything else is lovia's default, with a store in memory.
"""

import asyncio
import json
import sys
import time

from lovia.context import Compaction, CompactionRequest, InMemoryResultStore
from lovia.providers.openai_chat import entries_to_openai_messages
from lovia.transcript import (
    AssistantTextEntry,
    FinishDelta,
    InputEntry,
    ReasoningEntry,
    TextDelta,
    ToolCallEntry,
    ToolResultEntry,
)


def tell(message):
    sys.stdout.write(json.dumps(message) + "\n")
    sys.stdout.flush()


def hear():
    return json.loads(sys.stdin.readline())


def text(content):
    if isinstance(content, list):
        return "".join(part.get("text", "") for part in content)
    return content or ""


def entries(message):
    role = message["role"]
    if role in ("system", "developer"):
        yield InputEntry(role="system", content=text(message.get("content")))
    elif role == "user":
        yield InputEntry(role="user", content=text(message.get("content")))
    elif role == "tool":
        yield ToolResultEntry(
            call_id=message.get("tool_call_id", ""), output=text(message.get("content"))
        )
    else:
        if message.get("reasoning_content"):
            yield ReasoningEntry(content=message["reasoning_content"], provider="openai-chat")
        if message.get("content"):
            yield AssistantTextEntry(content=text(message["content"]))
        for call in message.get("tool_calls") or []:
            function = call["function"]
            yield ToolCallEntry(
                call_id=call["id"], name=function["name"], arguments=function["arguments"]
            )


class Provider:
    """Its answers are those of the caller's summarizer."""

    name, model, base_url = "openai-chat", "model", ""

    def __init__(self, window):
        self.window, self.waited = window, 0.0

    def context_window(self):
        return self.window

    async def stream(self, conversation, **_):
        start = time.process_time()
        messages = entries_to_openai_messages(conversation, reasoning_provider="openai-chat")
        tell({"ask": messages})
        answer = hear()["text"]
        self.waited += time.process_time() - start
        yield TextDelta(text=answer)
        yield FinishDelta(reason="stop")


async def main(window):
    provider = Provider(window)
    policy = Compaction(context_window=window, store=InMemoryResultStore())
    transcript, scratch = [], {}
    tools = policy.tools()
    schemas = [tool.openai_schema() for tool in tools]
    for line in sys.stdin:
        turn = json.loads(line)
        for message in turn["messages"]:
            transcript.extend(entries(message))
        provider.waited = 0.0
        start = time.process_time()
        result = await policy.compact(
            CompactionRequest(
                entries=list(transcript),
                provider=provider,
                model=provider.model,
                tools=tools,
                last_input_tokens=turn.get("usage"),
                scratch=scratch,
            )
        )
        spent = time.process_time() - start - provider.waited
        view = entries_to_openai_messages(
            result.entries,
            reasoning_provider="openai-chat",
            include_reasoning=True,
            include_images=True,
        )
        tell({"view": view, "tools": schemas, "milliseconds": spent * 1000})


asyncio.run(main(int(sys.argv[1])))

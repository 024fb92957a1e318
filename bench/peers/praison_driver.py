"""PraisonAI's compaction as a policy; see python_peer.mjs for the protocol.

Argument: the context window. As an agent with `context_compaction` does it: the history is
compacted in place when it is over four fifths of the window, to three fifths, by its strategy for
summaries by a model.
"""

import asyncio
import json
import logging
import os
import sys
import time

os.environ["PRAISONAI_TELEMETRY_DISABLED"] = os.environ["DO_NOT_TRACK"] = "true"
logging.disable(logging.CRITICAL)

from praisonaiagents.compaction import (  # noqa: E402
    CompactionConfig,
    CompactionStrategy,
    ContextCompactor,
)

waited = 0.0


def tell(message):
    sys.stdout.write(json.dumps(message) + "\n")
    sys.stdout.flush()


async def summarize(prompt):
    global waited
    start = time.process_time()
    tell({"ask": [{"role": "user", "content": str(prompt)}]})
    text = json.loads(sys.stdin.readline())["text"]
    waited += time.process_time() - start
    return text


async def main(window):
    global waited
    compactor = ContextCompactor(
        config=CompactionConfig(max_tokens=window * 4 // 5, target_tokens=window * 3 // 5),
        strategy=CompactionStrategy.LLM_SUMMARIZE,
        llm_summarize_fn=summarize,
    )
    history = []
    for line in sys.stdin:
        history = history + json.loads(line)["messages"]
        waited, start = 0.0, time.process_time()
        if compactor.needs_compaction(history):
            history, _ = await compactor.compact_async(history)
        spent = time.process_time() - start - waited
        # Its own marks on messages, such as _compacted, are no part of a request.
        view = [
            {name: value for name, value in message.items() if not name.startswith("_")}
            for message in history
        ]
        tell({"view": view, "tools": [], "milliseconds": spent * 1000})


asyncio.run(main(int(sys.argv[1])))

"""The golden vectors as the component gives them in wasmtime; see tests/golden.rs.

Reads {"vectors": [...], "transcripts": {file: [message as JSON, ...]}} from standard input and
prints the vectors as they come out here.
"""

import hashlib
import json
import sys

from wasmtime import Engine, Store
from wasmtime.component import Component, Linker, Record, Variant

engine = Engine()
store = Store(engine)
instance = Linker(engine).instantiate(store, Component.from_file(engine, sys.argv[1]))
interface = instance.get_export_index(store, "tidemark:engine/sessions@0.1.0")


def function(name):
    found = instance.get_func(store, instance.get_export_index(store, name, interface))

    def call(*args):
        result = found(store, *args)
        found.post_return(store)
        # A result is told by its tag where classes do not tell it.
        tagged = isinstance(result, Variant) and result.tag in ("ok", "err")
        value = result.payload if tagged else result
        if isinstance(value, Record) and hasattr(value, "code"):
            raise ValueError(value.message)
        return value

    return call


def method(name):
    return function("[method]session." + name)


start = function("[static]session.open")
ingest, ingest_body, plan, resolve = map(method, ("ingest", "ingest-body", "plan", "resolve"))
render, render_body, recall, checkpoint = map(
    method, ("render", "render-body", "recall", "checkpoint")
)

REQUEST = Record()
for name in ("input-tokens", "overflow", "focus"):
    setattr(REQUEST, name, None)
for name in ("force", "fresh", "dry-run", "server-history"):
    setattr(REQUEST, name, False)

NAMES = {"max-tokens": "maxTokens", "first": "from", "end": "to"}


def digest(text):
    return hashlib.sha256(text if isinstance(text, bytes) else text.encode()).hexdigest()


def written(value):
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def drain(session, reply, seen):
    """Plans, performs effects one by one, and gives back the outcome."""
    step = plan(session, REQUEST)
    due = []
    while isinstance(step, list):
        due += step
        effect = due.pop(0)
        given = {name: value for name, value in vars(effect.payload).items() if value is not None}
        members = {NAMES.get(name, name): value for name, value in given.items()}
        seen.append(written({"kind": effect.tag, **members}) + "\n")
        text = Variant("text", reply)
        step = resolve(session, members["id"], Variant("done") if effect.tag == "put" else text)
    return step


def vector_of(vector, messages):
    options, reply, member = vector["options"], vector["reply"], vector["member"]
    effects, decisions = [], []
    session = start(written(options))
    for end in (len(messages) // 2, len(messages)):
        ingest(session, 0, "[" + ",".join(messages[:end]) + "]", [])
        decisions += drain(session, reply, effects).decisions
    ref = next((made.reference for made in decisions if made.reference is not None), None)
    page = recall(session, written({"pattern": "the"} if ref is None else {"ref": ref}))
    view, saved = render(session), checkpoint(session)
    session.drop(store)

    body = '{"model":"m","%s":[%s],"stream":true}' % (member, ",".join(messages))
    whole = start(written(options))
    ingest_body(whole, body.encode(), None)
    drain(whole, reply, [])
    sent = render_body(whole)
    whole.drop(store)
    return {
        "body": digest(body if sent is None else sent),
        "checkpoint": digest(saved),
        "decisions": len(decisions),
        "effects": digest("".join(effects)),
        "file": vector["file"],
        "member": member,
        "options": options,
        "recalled": digest(page.payload),
        "ref": ref,
        "reply": reply,
        "view": digest(view),
    }


try:
    start("{}")
    sys.exit("options without a secret were taken")
except ValueError as error:
    assert "options.secret" in str(error), error

cases = json.load(sys.stdin)
found = [vector_of(vector, cases["transcripts"][vector["file"]]) for vector in cases["vectors"]]
print(json.dumps(found))

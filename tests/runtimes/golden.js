// A golden vector as a session of the package gives it; see tests/golden.rs. It imports nothing, so
// it runs wherever sessions do.

export async function digest(text) {
  const bytes = await crypto.subtle.digest('SHA-256', new TextEncoder().encode(text));
  return [...new Uint8Array(bytes)].map((byte) => byte.toString(16).padStart(2, '0')).join('');
}

/** Performs effects one by one, as they were asked for; `seen` gets each as JSON. */
function drain(session, first, reply, seen) {
  const due = [];
  let step = first;
  while (step.kind === 'effects') {
    due.push(...step.effects);
    const effect = due.shift();
    seen.push(`${JSON.stringify(effect)}\n`);
    const text = { kind: 'text', text: reply };
    step = session.resolve(effect.id, effect.kind === 'put' ? { kind: 'done' } : text);
  }
  return step.outcome;
}

/**
 * @param open makes a session of options
 * @param {object} vector one of tests/golden.json
 * @param {object[]} transcript that of the file which it names
 * @returns the vector as it comes out here
 */
export async function vectorOf(open, { file, options, reply, member }, transcript) {
  const effects = [];
  let decisions = [];
  const session = open(options);
  for (const end of [Math.floor(transcript.length / 2), transcript.length]) {
    const step = session.plan(transcript.slice(0, end));
    decisions = decisions.concat(drain(session, step, reply, effects).decisions);
  }
  const ref = decisions.find((decided) => decided.ref !== undefined)?.ref ?? null;
  const page = session.recall(ref === null ? { pattern: 'the' } : { ref });
  const view = await digest(session.renderJson?.() ?? JSON.stringify(session.render()));
  const checkpoint = await digest(session.checkpoint());
  session.dispose();

  const request = { model: 'm', [member]: transcript, stream: true };
  const body = open(options);
  const step = body.planBody(new TextEncoder().encode(JSON.stringify(request)));
  drain(body, step, reply, []);
  const sent = new TextDecoder().decode(body.renderBody());
  body.dispose();
  return {
    body: await digest(sent),
    checkpoint,
    decisions: decisions.length,
    effects: await digest(effects.join('')),
    file,
    member,
    options,
    recalled: await digest(page.text ?? page.key),
    ref,
    reply,
    view,
  };
}

// The command line as its user meets it: a process with files, pipes, signals and an exit code.
import assert from 'node:assert/strict';
import { execFileSync, spawnSync } from 'node:child_process';
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  realpathSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { gzipSync } from 'node:zlib';
import { Session } from '../../pkg/index.js';
import { replay, whole } from '../../pkg/replay/index.js';
import {
  data,
  ended,
  folder,
  plainEnv,
  program,
  provider,
  recorded,
  start,
  tidemark,
} from './cli.mjs';

const large = data('large.json');
const small = data('small.json');

/** A file of its own with that text. */
function file(name, text) {
  const path = join(folder(), name);
  writeFileSync(path, text);
  return path;
}

/** The command line that compacts the long session into 64k. */
const COMPACT = ['compact', large, '-w', '64k'];

/** Runs it, with whatever else the command line says. */
const compact = (more = [], options = {}) => tidemark([...COMPACT, ...more], options);

const lines = (messages) => messages.map((message) => `${JSON.stringify(message)}\n`).join('');

// ---- what the README shows ----------------------------------------------------------

test('the commands in the README print what it shows', async () => {
  const readme = readFileSync(new URL('../../README.md', import.meta.url), 'utf8');
  const [, console] = readme.match(/```console\n(.*?)```/s);
  const shown = console.split('$ npx tidemark ').slice(1);
  assert.equal(shown.length, 3);
  for (const [command, ...expected] of shown.map((text) => text.trimEnd().split('\n'))) {
    const args = command.split(' ').map((arg) => {
      if (arg.startsWith('tests/')) return data(arg.replace('tests/data/', ''));
      return /^(view|report)\./.test(arg) ? join(folder(), arg) : arg;
    });
    const { out, err } = await tidemark(args);
    const printed = `${out}\n${err}`.split('\n').map((line) => line.trimEnd());
    const missing = expected.filter((line) => {
      return line !== '…' && !line.startsWith('tests/data/') && !printed.includes(line);
    });
    assert.deepEqual(missing, [], `${command}:\n${printed.join('\n')}`);
  }
});

// ---- what is read ------------------------------------------------------------------

test('a transcript of every wire format is read', async () => {
  const names = [
    'small.json',
    'anthropic/session.json',
    'gemini/calls.json',
    'openai_responses/codex.json',
    'ai_sdk/anthropic.json',
  ];
  for (const name of names) {
    const whole = recorded(name);
    const list = Array.isArray(whole) ? whole : Object.values(whole).find(Array.isArray);
    const path = file('chat.json', JSON.stringify(list));
    const { code, json, err } = await tidemark(['inspect', path, '--json']);
    assert.equal(code, 0, err);
    const found = json();
    assert.equal(found.messages, list.length, name);
    assert.ok(found.tokens > 0, name);
  }
});

test('JSON lines, gzip and standard input give the same as the JSON file', async () => {
  const messages = recorded('small.json');
  const plain = (await tidemark(['inspect', small, '--json'])).json();
  const texts = [
    lines(messages),
    gzipSync(lines(messages)),
    gzipSync(JSON.stringify(messages, null, 2)),
  ];
  for (const input of texts) {
    const { json } = await tidemark(['inspect', '-', '--json'], { input });
    const found = json();
    assert.deepEqual({ ...found, file: small }, plain);
  }
  const zipped = file('chat.jsonl.gz', gzipSync(lines(messages)));
  const { json } = await tidemark(['inspect', zipped, '--json']);
  assert.equal(json().tokens, plain.tokens);
});

test('a session of Claude Code becomes Anthropic messages, blocks of one answer together', async () => {
  const { json } = await tidemark(['inspect', data('logs/claude_code.jsonl'), '--json']);
  const found = json();
  assert.equal(found.kind, 'claude-code');
  assert.deepEqual(found.problems, []);
  const records = readFileSync(data('logs/claude_code.jsonl'), 'utf8')
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line));
  const answers = new Set(
    records.flatMap(({ type, message }) => (type === 'assistant' ? [message.id] : [])),
  );
  const assistant = found.roles.find(({ name }) => name === 'assistant');
  assert.equal(assistant.count, answers.size);
  const calls = records.flatMap(({ type, message }) =>
    type === 'assistant' ? message.content.filter((block) => block.type === 'tool_use') : [],
  );
  assert.equal(
    found.tools.reduce((sum, tool) => sum + tool.calls, 0),
    calls.length,
  );
});

test('a Codex session becomes items of OpenAI Responses', async () => {
  const { json } = await tidemark(['inspect', data('logs/codex.jsonl'), '--json']);
  const found = json();
  assert.equal(found.kind, 'codex');
  assert.equal(found.messages, 16);
});

test('a request body counts with its tools and instructions', async () => {
  const messages = [{ role: 'user', content: 'Which port?' }];
  const description = 'Looks a port up in the table of services. '.repeat(40);
  const tools = [{ name: 'look', description, input_schema: { type: 'object' } }];
  const body = {
    model: 'claude-sonnet-4-5',
    max_tokens: 1000,
    system: 'Be terse.',
    tools,
    messages,
  };
  const { json } = await tidemark(['inspect', '-', '--json'], { input: JSON.stringify(body) });
  const found = json();
  assert.equal(found.kind, 'request');
  assert.ok(found.beside > 200, `${found.beside}`);
  assert.equal(found.messages, 1);
});

test('what cannot be read is refused with line and column', async () => {
  const cases = [
    ['[{"role":"user",\n "content": oops}]', /:2:13: /],
    ['[{"role":"user","content":"a"},\n {"role":7}]', /:2:10: messages\[1\]\.role/],
    ['{"model":"x"}', /:1:1: no messages found/],
    ['', /empty/],
    ['[{"role":"user","content":"cut off', /:1:27: .*text ends here|:1:27: unexpected end/],
  ];
  for (const [text, expected] of cases) {
    const { code, err, out } = await tidemark(['inspect', file('bad.json', text)]);
    assert.equal(code, 3, text);
    assert.match(err, expected);
    assert.equal(out, '');
  }
  const { code, err } = await tidemark(['inspect', '/nowhere/chat.json']);
  assert.equal(code, 3);
  assert.match(err, /no such file/);
});

test('of JSON lines a broken one is left out with a warning, and the rest is read', async () => {
  const messages = recorded('small.json');
  const text = lines(messages).split('\n');
  text[4] = text[4].slice(0, 30);
  text.splice(9, 0, '"a string"');
  const { code, err, json } = await tidemark([
    'inspect',
    file('chat.jsonl', text.join('\n')),
    '--json',
  ]);
  assert.equal(code, 0);
  assert.equal(json().messages, messages.length - 1);
  assert.match(err, /chat\.jsonl:5:\d+: /);
  assert.match(err, /chat\.jsonl:10:1: expected an object, found a string/);
});

test('a message that no format knows is left out of JSON lines likewise', async () => {
  const text = `${lines([{ role: 'user', content: 'a' }])}{"role":"user","content":7}\n${lines([{ role: 'assistant', content: 'b' }])}`;
  const { err, json } = await tidemark(['inspect', file('chat.jsonl', text), '--json']);
  assert.equal(json().messages, 2);
  assert.match(err, /chat\.jsonl:2:1: /);
});

// ---- inspect -----------------------------------------------------------------------

test('inspect adds up: parts to messages, messages to the whole', async () => {
  const { json } = await tidemark(['inspect', large, '--json']);
  const found = json();
  const sum = (list) => list.reduce((total, { tokens }) => total + tokens, 0);
  assert.equal(sum(found.kinds) + found.beside, found.tokens);
  assert.equal(sum(found.roles) + found.beside, found.tokens);
  assert.equal(sum(found.perMessage) + found.beside, found.tokens);
  const session = new Session();
  session.sync(recorded('large.json'));
  assert.equal(session.estimate().tokens, found.tokens);
  assert.deepEqual(found.problems, session.problems());
  const sizes = session.sizes();
  const biggest = sizes
    .flatMap(({ parts }) => parts.map((part) => part.tokens))
    .sort((a, b) => b - a);
  assert.deepEqual(
    found.biggest.map(({ tokens }) => tokens),
    biggest.slice(0, 10),
  );
});

test('duplicates are results with the same content', async () => {
  const text = 'port 8443 is open\n'.repeat(40);
  const call = (id) => [
    {
      role: 'assistant',
      content: null,
      tool_calls: [{ id, type: 'function', function: { name: 'scan', arguments: '{}' } }],
    },
    { role: 'tool', tool_call_id: id, content: text },
  ];
  const chat = [{ role: 'user', content: 'Scan.' }, ...call('a'), ...call('b'), ...call('c')];
  const { json } = await tidemark(['inspect', '-', '--json'], { input: JSON.stringify(chat) });
  const [duplicate, ...others] = json().duplicates;
  assert.deepEqual(others, []);
  assert.deepEqual(duplicate.messages, [2, 4, 6]);
  assert.equal(duplicate.tool, 'scan');
  assert.equal(duplicate.wasted, 2 * duplicate.tokens);
});

/** The long session so often that it has 40 MB, as JSON lines and as arrays. */
function huge() {
  const messages = recorded('large.json').map((message) => JSON.stringify(message));
  const times = Math.ceil((40 * 1024 * 1024) / messages.join().length);
  const all = Array(times).fill(messages).flat();
  return { times, all };
}

for (const [kind, name, write] of [
  ['JSON lines', 'huge.jsonl', (all) => all.map((message) => `${message}\n`).join('')],
  ['an array on one line', 'huge.json', (all) => `[${all.join(',')}]`],
  ['an array on many lines', 'huge.json', (all) => ` [\n  ${all.join(' ,\n  ')}\n]\n`],
]) {
  test(`${kind}: large files are read in pieces, with bounded memory and the same sums`, {
    timeout: 300_000,
  }, async () => {
    const { times, all } = huge();
    const path = file(name, write(all));
    const node = ['--max-old-space-size=96'];
    const { code, err, json } = await tidemark(['inspect', path, '--json'], { node });
    assert.equal(code, 0, err);
    const found = json();
    const once = (await tidemark(['inspect', large, '--json'])).json();
    assert.equal(found.messages, once.messages * times);
    const result = ({ kinds }) => kinds.find(({ name }) => name === 'result').tokens;
    // A call at the end of a block is answered by nothing in the next: only its framing may differ.
    assert.equal(result(found), result(once) * times);
    assert.equal(found.perMessage, null);
  });
}

test('of a large array that is broken the line and the column are named', {
  timeout: 300_000,
}, async () => {
  const { all } = huge();
  const broken = [...all];
  broken[20_000] = '{"role":"user",\n "content":nothing}';
  for (const [text, why] of [
    [`[\n${broken.join(',\n')}\n]`, /huge\.json:20003:12: invalid symbol/],
    [`[${all.join(',\n')}`, new RegExp(`huge\\.json:${all.length}:\\d+: .*the text ends here`)],
    [`[${all.join(',\n')}]\n]`, new RegExp(`huge\\.json:${all.length}:\\d+: the text goes on`)],
    [`[${all.join(',\n')},\n]`, new RegExp(`huge\\.json:${all.length + 1}:1: `)],
  ]) {
    const { code, err } = await tidemark(['validate', file('huge.json', text)]);
    assert.equal(code, 3, err);
    assert.match(err, why);
  }
});

test('what is no message in a large array is warned of, and the rest is read', {
  timeout: 300_000,
}, async () => {
  const { all } = huge();
  const odd = [...all];
  odd[20_000] = '{"speaker":"user"}';
  const path = file('huge.json', `[\n${odd.join(',\n')}\n]`);
  const { code, err, json } = await tidemark(['validate', path, '--json']);
  assert.equal(code, 1, err);
  assert.match(err, /huge\.json:20002:1: message: neither a role/);
  assert.equal(json().unreadable, 1);
});

// ---- compact -----------------------------------------------------------------------

test('compact writes the view to standard output and the report beside it', async () => {
  const { code, out, err } = await compact();
  assert.equal(code, 0);
  const view = JSON.parse(out);
  assert.ok(view.length < 646);
  assert.match(err, /compacted: [\d,]+ → [\d,]+ tokens/);
  assert.match(err, /folded into the summary/);
});

test('the file that -o names holds the same view, and --json the report', async () => {
  const at = folder();
  const view = (await compact(['--no-recall'])).out;
  const out = join(at, 'view.json');
  const { json, code } = await compact(['--no-recall', '-o', out, '--json']);
  assert.equal(code, 0);
  const report = json();
  assert.equal(report.compacted, true);
  assert.equal(report.view, undefined);
  assert.ok(report.decisions.length > 10);
  assert.equal(readFileSync(out, 'utf8').length > 0, true);
  assert.equal(JSON.parse(readFileSync(out, 'utf8')).length, JSON.parse(view).length);
  assert.deepEqual(readdirSync(at), ['view.json']);
});

test('lines stay lines, and a request keeps every byte that is not edited', async () => {
  const messages = recorded('large.json');
  const listed = await tidemark(['compact', '-', '-w', '64k'], { input: lines(messages) });
  const view = listed.out
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line));
  assert.ok(view.length > 5 && view.length < messages.length);
  const short = `{ "model": "gpt-5",  \n   \n"messages": [{"role":"user","content":"hi"}] }\n\n`;
  assert.equal((await tidemark(['compact', '-', '-w', '64k'], { input: short })).out, short);
  const body = `{ "model": "gpt-5",  "temperature": 0.50, "messages": ${JSON.stringify(messages)} }`;
  const { out } = await tidemark(['compact', '-', '-w', '64k'], { input: body });
  assert.ok(out.startsWith('{ "model": "gpt-5",  "temperature": 0.50, "messages": ['));
  assert.ok(!out.includes('recall('), 'nobody runs the recall tool there');
});

test('a dry run writes nothing', async () => {
  const at = folder();
  const [view, checkpoint, store] = ['view.json', 'c', 'store'].map((name) => join(at, name));
  const more = ['-o', view, '--checkpoint', checkpoint, '--store', store];
  const { code, out } = await compact(['--dry-run', ...more]);
  assert.equal(code, 0);
  assert.match(out, /compacted/);
  assert.deepEqual(readdirSync(at), []);
});

test('a view that cannot fit is exit code 1', async () => {
  const { code, err } = await tidemark(['compact', large, '-w', '600']);
  assert.equal(code, 1);
  assert.match(err, /cannot fit/);
});

test('a checkpoint is gone on from, and shown without its secret', async () => {
  const at = folder();
  const checkpoint = join(at, 'chat.checkpoint');
  const first = await compact(['--checkpoint', checkpoint]);
  const { secret, parts } = JSON.parse(readFileSync(checkpoint, 'utf8'));
  const second = await compact(['--checkpoint', checkpoint, '--json']);
  assert.equal(second.json().reason, 'under_trigger');
  assert.deepEqual(second.json().view, JSON.parse(first.out));
  for (const more of [[], ['--json']]) {
    const { code, out } = await tidemark(['checkpoint', 'show', checkpoint, ...more]);
    assert.equal(code, 0);
    assert.ok(!out.includes(secret));
    assert.ok(parts.length > 0 && out.includes('Session intent'));
  }
  const broken = file('broken', '{"tidemark":1}');
  assert.equal((await tidemark(['checkpoint', 'show', broken])).code, 3);
});

test('recall brings back what the markers name', async () => {
  const at = folder();
  const checkpoint = join(at, 'c');
  const { json } = await compact(['--checkpoint', checkpoint, '--json']);
  const { index, ref } = json().decisions.find(({ kind }) => kind === 'cleared');
  const { content } = recorded('large.json')[index];
  const page = await tidemark(['recall', large, ref, '--checkpoint', checkpoint]);
  assert.equal(page.code, 0, page.err);
  assert.ok(page.out.includes(content.slice(0, 200)));
  const search = await tidemark(['recall', large, '--pattern', 'gitleaks', '-w', '64k']);
  assert.match(search.out, /lines with "gitleaks"/);
  assert.equal((await tidemark(['recall', large, '-w', '64k'])).code, 2);
});

// ---- summarizers -------------------------------------------------------------------

const summary = [
  '## Session intent\n- Set up signing keys.',
  '## Current state\n- Keys imported.',
  '## Key facts\n- gpg 2.4',
  '## Artifacts\n- .gitleaks.toml',
  '## Constraints\n- none',
  '## Next steps\n- Push.',
].join('\n\n');

test('openai and anthropic are asked for summaries at the place that is given', async () => {
  const shapes = {
    openai: { choices: [{ message: { content: summary } }] },
    anthropic: { content: [{ type: 'text', text: summary }] },
  };
  const paths = { openai: '/v1/chat/completions', anthropic: '/v1/messages' };
  for (const kind of ['openai', 'anthropic']) {
    const { url, requests } = await provider(() => ({ body: shapes[kind] }));
    const base = kind === 'openai' ? `${url}/v1` : url;
    const name = kind.toUpperCase();
    const env = { [`${name}_API_KEY`]: 'key-1', [`${name}_BASE_URL`]: base };
    const args = ['--summarizer', `${kind}:some-model`, '--json'];
    const { code, json, err } = await compact(args, { env });
    assert.equal(code, 0, err);
    assert.equal(json().summary.by, 'host');
    assert.match(json().summary.text, /Set up signing keys/);
    const [{ url: path, headers, body }] = requests;
    assert.equal(path, paths[kind]);
    assert.equal(
      headers.authorization ?? headers['x-api-key'],
      kind === 'openai' ? 'Bearer key-1' : 'key-1',
    );
    assert.equal(body.model, 'some-model');
    assert.ok((body.max_completion_tokens ?? body.max_tokens) > 0);
  }
});

test('a busy server is asked again; where it fails for good the local summarizer steps in', async () => {
  const good = { choices: [{ message: { content: summary } }] };
  const busy = await provider((times) =>
    times === 1 ? { status: 429, body: {}, more: { 'retry-after': '0.01' } } : { body: good },
  );
  const env = { OPENAI_API_KEY: 'key' };
  const args = ['--summarizer', 'openai:m', '--json', '--base-url'];
  const once = await compact([...args, busy.url], { env });
  assert.equal(once.json().summary.by, 'host');
  assert.ok(busy.requests.length >= 2);
  const failing = await provider(() => ({
    status: 400,
    body: { error: { message: 'no such model' } },
  }));
  const { code, json } = await compact([...args, failing.url], { env });
  assert.equal(code, 0);
  assert.equal(json().summary.by, 'local');
  assert.match(json().failures[0].message, /HTTP 400.*no such model/);
});

test('a summarizer without its key is a wrong command line', async () => {
  const { code, err } = await compact(['--summarizer', 'openai:m']);
  assert.equal(code, 2);
  assert.match(err, /OPENAI_API_KEY/);
});

// ---- replay ------------------------------------------------------------------------

test('replay counts as the library does', async () => {
  const { code, json } = await tidemark([
    'replay',
    small,
    '-w',
    '4k',
    '--compare',
    'default,none',
    '--json',
  ]);
  assert.equal(code, 0);
  const [ours, none] = json().policies;
  const session = new Session();
  const messages = recorded('small.json');
  session.sync(messages);
  const known = new Map(session.sizes().map(({ tokens }, at) => [messages[at], tokens]));
  const report = await replay(messages, whole, {
    window: 4000,
    count: (text) => text.length,
    weigh: (value) => ({ text: JSON.stringify(value), tokens: known.get(value) ?? 0 }),
  });
  assert.equal(none.calls, report.calls);
  assert.equal(none.sent, report.tokens.read + report.tokens.written + report.tokens.plain);
  assert.equal(none.over, report.over);
  assert.ok(report.over > 0);
  assert.equal(ours.over, 0);
  assert.equal(ours.refused, 0);
  assert.equal(ours.retention.lost, 0);
  assert.ok(ours.bursts > 0);
});

test('the file may stand behind --compare', async () => {
  const policies = async (...args) => {
    const { code, json, err } = await tidemark(['replay', ...args, '-w', '4k', '--json']);
    assert.equal(code, 0, err);
    return json().policies.map(({ policy }) => policy);
  };
  const all = await policies(small, '--compare');
  assert.ok(all.length > 5 && all.includes('none'));
  assert.deepEqual(await policies('--compare', small), all);
  for (const args of [
    [small, '--compare', 'late,none'],
    ['--compare', 'late,none', small],
    ['--compare=late,none', small],
  ]) {
    assert.deepEqual(await policies(...args), ['late', 'none']);
  }
  for (const [args, why] of [
    [['--compare'], /missing required argument 'file'/],
    [['--compare', 'late'], /missing required argument 'file'/],
    [['--compare', 'late,nosuch', small], /nosuch: unknown[\s\S]*known are default, /],
  ]) {
    const { code, err } = await tidemark(['replay', ...args, '-w', '4k']);
    assert.equal(code, 2);
    assert.match(err, why);
  }
});

test('a price table of its own is taken', async () => {
  const cost = async (table) => {
    const path = file('prices.json', JSON.stringify(table));
    const { json, err } = await tidemark(['replay', small, '-w', '4k', '--prices', path, '--json']);
    assert.equal(err, '');
    return json().policies[0];
  };
  const base = await cost({ input: 2, cache: 'none' });
  const sent = base.sent;
  assert.ok(Math.abs(base.cost - (sent * 2) / 1e6) < 1e-9);
  assert.ok((await cost({ input: 2, read: 0.2, minimum: 0, step: 1 })).cost < base.cost);
  const bad = file('prices.json', '{"input":"free"}');
  assert.equal((await tidemark(['replay', small, '-w', '4k', '--prices', bad])).code, 3);
});

test('sessions of other formats are replayed, at the times of their log', async () => {
  for (const [name, timed] of [
    ['logs/claude_code.jsonl', true],
    ['logs/codex.jsonl', true],
    ['gemini/calls.json', false],
  ]) {
    const { code, json, err } = await tidemark(['replay', data(name), '-w', '8k', '--json']);
    assert.equal(code, 0, `${name}: ${err}`);
    const found = json();
    assert.equal(found.timed, timed, name);
    const [{ calls, refused, over }] = found.policies;
    assert.ok(calls > 0, name);
    assert.deepEqual([refused, over], [0, 0], name);
  }
});

test('the page with charts is one file, and holds what was measured', async () => {
  const at = folder();
  const html = join(at, 'report.html');
  const { json } = await tidemark([
    'replay',
    small,
    '-w',
    '4k',
    '--compare',
    'default,none',
    '--html',
    html,
    '--json',
  ]);
  const page = readFileSync(html, 'utf8');
  assert.ok(!/(src|href)\s*=\s*["']?(https?:)?\/\//.test(page), 'it loads nothing');
  const [, text] = /<script type="application\/json" id="data">(.*?)<\/script>/s.exec(page);
  const { ways, window } = JSON.parse(text);
  assert.equal(window, 4000);
  assert.deepEqual(
    ways.map(({ cost }) => cost),
    json().policies.map(({ cost }) => cost),
  );
});

const chromium = process.env.CHROMIUM ?? '/usr/bin/chromium';

test('Chromium draws the charts', {
  skip: !existsSync(chromium) && 'no Chromium here',
}, async () => {
  const at = folder();
  const html = join(at, 'report.html');
  await tidemark(['replay', large, '-w', '32k', '--compare', 'default,none', '--html', html]);
  const look = `<script>
    addEventListener('error', (event) => { document.body.dataset.error = event.message; });
    addEventListener('load', () => setTimeout(() => {
      const colours = [...document.querySelectorAll('canvas')].map((canvas) => {
        const { data } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
        const seen = new Set();
        for (let at = 0; at < data.length; at += 4) {
          if (data[at + 3] === 255) seen.add(data.slice(at, at + 3).join());
        }
        return [...seen];
      });
      document.body.dataset.colours = JSON.stringify(colours);
    }, 300));
  </script></body>`;
  writeFileSync(
    html,
    readFileSync(html, 'utf8').replace('</body>', () => look),
  );
  const args = ['--headless', '--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage'];
  const more = [
    `--user-data-dir=${join(at, 'profile')}`,
    '--virtual-time-budget=5000',
    '--dump-dom',
  ];
  const dom = execFileSync(chromium, [...args, ...more, `file://${html}`], {
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'ignore'],
    timeout: 60_000,
    maxBuffer: 1 << 26,
  });
  assert.doesNotMatch(dom, /data-error/);
  const [, attribute] = /data-colours="([^"]*)"/.exec(dom) ?? [];
  assert.ok(attribute, 'the page ran');
  const charts = JSON.parse(attribute.replaceAll('&quot;', '"'));
  assert.equal(charts.length, 3);
  // The lines of two policies, in the colours of the page.
  for (const chart of charts.slice(0, 2)) {
    assert.ok(chart.includes('47,126,216') && chart.includes('228,119,46'));
  }
  assert.ok(charts[2].length > 3);
  assert.match(dom, /<td[^>]*>(<[^>]*>)*<\/span>default<\/td>|default<\/td>/);
});

// ---- validate, settings, statistics ------------------------------------------------

test('validate says what a provider would refuse, by its exit code too', async () => {
  const good = await tidemark(['validate', small]);
  assert.equal(good.code, 0);
  assert.match(good.out, /34 messages: no problems/);
  const bad = await tidemark(['validate', data('mid.json'), '--json']);
  assert.equal(bad.code, 1);
  const session = new Session();
  session.sync(recorded('mid.json'));
  assert.deepEqual(bad.json().problems, session.problems());
});

test('settings come from the file, then the environment, then options', async () => {
  const cwd = folder();
  const window = async (args, env) =>
    (await tidemark(['status', '--json', ...args], { cwd, env })).json().budget.window;
  assert.equal(await window([], {}), null);
  assert.equal((await tidemark(['config', 'set', 'window', '200k'], { cwd })).code, 0);
  assert.deepEqual(JSON.parse(readFileSync(join(cwd, 'tidemark.json'), 'utf8')), {
    window: 200_000,
  });
  assert.equal(await window([], {}), 200_000);
  assert.equal(await window([], { TIDEMARK_WINDOW: '128k' }), 128_000);
  assert.equal(await window(['-w', '32k'], { TIDEMARK_WINDOW: '128k' }), 32_000);
  const { out } = await tidemark(['config', 'get', 'window'], {
    cwd,
    env: { TIDEMARK_WINDOW: '1m' },
  });
  assert.equal(out, '1000000\n');
  assert.equal((await tidemark(['config', 'set', 'compactAt', '85'], { cwd })).code, 2);
  assert.equal((await tidemark(['config', 'set', 'windw', '85'], { cwd })).code, 2);
  assert.equal((await tidemark(['config', 'set', 'window'], { cwd })).code, 0);
  assert.equal((await tidemark(['config', 'get', 'window'], { cwd })).code, 1);
  await tidemark(['config', 'set', 'store', 'kept'], { cwd });
  mkdirSync(join(cwd, 'below'));
  const below = await tidemark(['config', 'get', 'store'], { cwd: join(cwd, 'below') });
  assert.equal(below.out.trim(), `${realpathSync(cwd)}/kept`, 'paths start at the file');
  assert.equal((await tidemark(['config', 'set', 'baseUrl', 'http://x'], { cwd })).code, 2);
  writeFileSync(join(cwd, 'tidemark.json'), '{"baseUrl": "http://127.0.0.1:1"}');
  assert.match((await tidemark(['status'], { cwd })).err, /your key/);
  writeFileSync(join(cwd, 'tidemark.json'), '{"window": }');
  assert.equal((await tidemark(['status'], { cwd })).code, 2);
});

test('stats adds up what was compacted with a store', async () => {
  const cwd = folder();
  const env = { TIDEMARK_STORE: 'kept' };
  assert.equal((await tidemark(['stats'], { cwd })).code, 2);
  assert.equal((await tidemark(['stats'], { cwd, env })).code, 1);
  const { json } = await compact(['--json'], { cwd, env });
  const { tokensBefore, tokensAfter } = json();
  await tidemark(['compact', small, '-w', '64k'], { cwd, env });
  const stats = (await tidemark(['stats', '--json'], { cwd, env })).json();
  assert.equal(stats.runs, 2);
  assert.equal(stats.bursts, 1);
  assert.equal(stats.saved, tokensBefore - tokensAfter);
  assert.ok(stats.kept.contents > 0 && stats.kept.bytes > 0);
});

// ---- terminals, pipes, signals -----------------------------------------------------

const ESCAPE = String.fromCharCode(27);

test('without a terminal there are no colours and no progress', async () => {
  for (const args of [['inspect', large], COMPACT, ['replay', small, '-w', '4k']]) {
    const { out, err } = await tidemark(args);
    assert.ok(!out.includes(ESCAPE) && !err.includes(ESCAPE), args[0]);
    assert.ok(!err.includes('%]') && !err.includes('░'), args[0]);
  }
  const forced = await tidemark(['inspect', small, '--color']);
  assert.ok(forced.out.includes(ESCAPE));
  const never = await tidemark(['inspect', small], { env: { NO_COLOR: '1', FORCE_COLOR: '' } });
  assert.ok(!never.out.includes(ESCAPE));
});

const hasScript = spawnSync('script', ['--version']).status === 0;

test('a narrow terminal is not overrun', { skip: !hasScript && 'no script(1) here' }, () => {
  for (const width of [30, 44, 80]) {
    const command = `stty cols ${width}; '${process.execPath}' '${program}' inspect '${small}' --messages`;
    const env = plainEnv({ TERM: 'xterm-256color' });
    const out = execFileSync('script', ['-qec', command, '/dev/null'], {
      encoding: 'utf8',
      env,
      input: '',
    });
    assert.ok(out.includes(ESCAPE), 'a terminal has colours');
    const plain = out.replaceAll(new RegExp(`${ESCAPE}\\[[0-9;?]*[a-zA-Z]`, 'g'), '');
    // The first lines name the file, whose path is as long as it is.
    for (const line of plain.split(/\r?\n/).slice(2)) {
      assert.ok([...line].length <= width, `${width}: ${[...line].length}: ${line}`);
    }
  }
});

test('a terminal is shown how far it is, and gets its cursor back', {
  skip: !hasScript && 'no script(1) here',
}, () => {
  const command = `'${process.execPath}' '${program}' replay '${large}' -w 32k`;
  const env = plainEnv({ TERM: 'xterm-256color' });
  const run = (line) =>
    execFileSync('script', ['-qec', line, '/dev/null'], { encoding: 'utf8', env, input: '' });
  const out = run(command);
  assert.match(out, /replaying .*\d%/);
  assert.ok(out.lastIndexOf(`${ESCAPE}[?25h`) > out.lastIndexOf(`${ESCAPE}[?25l`));
  assert.doesNotMatch(run(`${command} --quiet`), /replaying/);
});

test('names in a file cannot command the terminal', async () => {
  const name = `evil${ESCAPE}[2Jtool`;
  const chat = [
    { role: 'user', content: `a${ESCAPE}]0;title\u0007b` },
    {
      role: 'assistant',
      content: null,
      tool_calls: [{ id: 'a', type: 'function', function: { name, arguments: '{}' } }],
    },
    { role: 'tool', tool_call_id: 'a', content: `x${ESCAPE}[31m` },
  ];
  const { out } = await tidemark(['inspect', '-'], { input: JSON.stringify(chat) });
  assert.ok(out.includes('tool') && !out.includes(ESCAPE) && !out.includes('\u0007'));
});

test('a closed pipe ends it quietly', async () => {
  for (const args of [
    ['compact', large, '-w', '400k', '--json'],
    ['inspect', large, '--messages'],
  ]) {
    const child = start(args);
    let err = '';
    child.stderr.on('data', (text) => {
      err += text;
    });
    child.stdout.destroy();
    assert.equal(await ended(child), 0, err);
    assert.equal(err.includes('EPIPE'), false);
    assert.equal(/\n\s+at /.test(err), false);
  }
});

test('Ctrl-C leaves no half-written output', async () => {
  const at = folder();
  const out = join(at, 'view.json');
  writeFileSync(out, 'the old one');
  const { url, requests } = await provider(() => undefined);
  const env = { OPENAI_API_KEY: 'key' };
  const args = [...COMPACT, '-o', out, '--checkpoint', join(at, 'c')];
  const child = start([...args, '--summarizer', 'openai:m', '--base-url', url], { env });
  while (requests.length === 0) await new Promise((resolve) => setTimeout(resolve, 20));
  child.kill('SIGINT');
  assert.equal(await ended(child), 130);
  assert.deepEqual(readdirSync(at), ['view.json']);
  assert.equal(readFileSync(out, 'utf8'), 'the old one');
});

test('a file that cannot be written is exit code 4, and leaves nothing', async () => {
  const { code, err } = await tidemark(['compact', small, '-w', '64k', '-o', '/nowhere/view.json']);
  assert.equal(code, 4);
  assert.match(err, /no such folder/);
});

// ---- help --------------------------------------------------------------------------

test('a wrong command line says what is wrong and is exit code 2', async () => {
  for (const args of [
    ['inspct', small],
    ['inspect'],
    ['compact', small],
    ['compact', small, '-w', 'much'],
    ['inspect', small, '--tokenizer', 'x'],
  ]) {
    const { code, err, out } = await tidemark(args);
    assert.equal(code, 2, args.join(' '));
    assert.match(err, /^tidemark: /);
    assert.equal(out, '');
  }
  assert.match((await tidemark(['inspct'])).err, /inspect/);
});

test('every command has examples, and the manual knows every command and option', async () => {
  const manual = readFileSync(join(program, '../../CLI.md'), 'utf8');
  const words = async (...line) => {
    const { out } = await tidemark(['complete', '--', ...line]);
    return out.split('\n').flatMap((text) => text.split('\t')[0] || []);
  };
  const commands = (await words('')).filter((name) => name !== 'help');
  assert.ok(commands.length >= 9, commands.join());
  for (const name of commands) {
    const inner = (await words(name, '')).filter((word) => word !== 'help');
    const nested = ['config', 'checkpoint'].includes(name);
    for (const line of nested ? inner.map((word) => [name, word]) : [[name]]) {
      const { code, out } = await tidemark([...line, '--help']);
      assert.equal(code, 0);
      assert.match(out, /Examples:/, line.join(' '));
      assert.ok(manual.includes(line.join(' ')), line.join(' '));
      for (const option of await words(...line, '--')) {
        assert.ok(manual.includes(`\`${option}`), `${line.join(' ')} ${option}`);
      }
    }
  }
});

/** What each shell makes of a command line whose end is to be completed: the words it offers. */
const SHELLS = {
  bash: (words) => [
    'source <(tidemark completion bash)',
    `COMP_WORDS=(${words.map((word) => `'${word}'`).join(' ')})`,
    `COMP_CWORD=${words.length - 1}; _tidemark`,
    'printf "%s\\n" "$' + '{COMPREPLY[@]}"',
  ],
  fish: (words) => [
    'source (tidemark completion fish | psub)',
    `complete -C '${words.join(' ')}' | cut -f 1`,
  ],
  // A real zsh in a terminal of its own: the words are typed, then Tab, and then its line is shown.
  zsh: (words) => [
    'zmodload zsh/zpty; zpty inner zsh -f -i',
    `zpty -w inner 'PROMPT=; path=($BIN $path); autoload -Uz compinit; compinit -D -u
      source <(tidemark completion zsh)
      show() { print -r -- "<<""$BUFFER"">>" }; zle -N show; bindkey "^X^X" show
      print -r -- REA""DY'`,
    "zpty -r -m inner out '*READY*'",
    `zpty -wn inner '${words.join(' ')}'$'\\t\\x18\\x18'`,
    "zpty -r -m inner out '*<<*>>*'; zpty -d inner",
    'line=$' + '{out##*<<}; print -r -- $' + '{$' + '{line%%>>*}% }',
  ],
};

for (const [shell, script] of Object.entries(SHELLS)) {
  const missing = spawnSync(shell, ['-c', 'true']).error && `no ${shell} here`;
  test(`${shell} completes commands, options and their values`, { skip: missing }, async () => {
    const bin = folder();
    const starter = `#!/bin/sh\nexec '${process.execPath}' '${program}' "$@"\n`;
    writeFileSync(join(bin, 'tidemark'), starter, { mode: 0o755 });
    writeFileSync(join(bin, 'session.json'), '[]');
    const given = plainEnv();
    const env = { ...given, PATH: `${bin}:${given.PATH}`, BIN: bin, TERM: 'xterm' };
    const quiet = { bash: '--norc', fish: '--no-config', zsh: '-f' }[shell];
    const offered = (...words) => {
      const code = script(['tidemark', ...words]).join('\n');
      const how = { encoding: 'utf8', env, cwd: bin, timeout: 60_000 };
      const out = execFileSync(shell, [quiet, '-c', code], how);
      if (shell === 'zsh') return [out.trim().split(' ').at(-1)];
      return out.split('\n').filter(Boolean).sort();
    };
    assert.deepEqual(offered('ins'), ['inspect']);
    assert.deepEqual(offered('compact', '--dry'), ['--dry-run']);
    assert.deepEqual(offered('config', 'get', 'win'), ['window']);
    if (shell !== 'bash') assert.deepEqual(offered('inspect', 'ses'), ['session.json']);
    if (shell === 'zsh') {
      // What the words in question have in common.
      assert.deepEqual(offered('inspect', '--format', 'open'), ['openai-']);
      return;
    }
    const both = ['openai-chat', 'openai-responses'];
    assert.deepEqual(offered('inspect', '--format', 'open'), both);
    if (shell === 'bash') assert.deepEqual(offered('inspect', ''), [], 'files are for the shell');
    for (const command of ['inspect', 'compact', 'replay', 'recall', 'status']) {
      const { out } = await tidemark([command, '--help']);
      const options = [...out.matchAll(/^ +(?:-\w, )?(--[\w-]+)/gm)].map(([, long]) => long);
      assert.ok(options.length > 5, out);
      assert.deepEqual(offered(command, '--'), [...new Set(options)].sort(), command);
    }
  });
}

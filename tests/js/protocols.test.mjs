// What hosts may choose about summaries from JavaScript: templates, and functions in place of ours.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Compactor } from '../../pkg/index.js';
import { agent, assertValid } from './chat.mjs';

const summarizing = { window: 16_000, stages: ['summarize', 'drop', 'elide'] };
const plan = '## Plan\nGo on with part-1.';

test('sections of one’s own reach the summarizer and the view', async () => {
  const asked = [];
  const compactor = new Compactor({
    ...summarizing,
    summary: {
      sections: ['Plan', { name: 'Seen', about: 'Files.', holds: ['artifacts'] }],
      prefix: 'Notes.',
    },
    summarizer(request) {
      asked.push(request.system);
      return `${plan}\n## Seen\n- part-1.rs`;
    },
  });
  const result = await compactor.compact(agent(20));
  assert.ok(asked[0].endsWith('## Plan\n## Seen\nFiles.'));
  assert.equal(result.summary.by, 'host');
  assert.match(JSON.stringify(result.messages), /<conversation_summary>\\nNotes\. /);
});

test('fresh starts over', async () => {
  const prompts = [];
  const summarizer = ({ prompt }) => {
    prompts.push(prompt);
    return plan;
  };
  const summary = { sections: ['Plan'] };
  const compactor = new Compactor({ ...summarizing, summarizer, summary });
  await compactor.compact(agent(20));
  await compactor.compact(agent(30), { force: true });
  assert.ok(prompts.at(-1).includes('<summary-'));
  await compactor.compact(agent(40), { force: true, fresh: true });
  const first = prompts.findLast((prompt) => prompt.includes('Find out why the build is slow.'));
  assert.ok(!first.includes('<summary-'));
});

test('format, prune, build and validate are the host’s to replace', async () => {
  const seen = { format: [], prune: [], build: [], validate: [] };
  const summary = {
    sections: ['Plan'],
    format(pieces) {
      seen.format.push(pieces);
      return pieces.map((piece) => `${piece.kind}: ${piece.text}`).join('\n');
    },
    prune(piece) {
      seen.prune.push(piece);
      return `${piece.text.length} characters`;
    },
    build(request) {
      seen.build.push(request);
      return 'Built by the host.';
    },
    validate(request) {
      seen.validate.push(request);
      return 'I never like it';
    },
  };
  let prompt;
  const compactor = new Compactor({
    ...summarizing,
    summary,
    summarizer: (request) => {
      prompt = request.prompt;
      return plan;
    },
  });
  const result = await compactor.compact(agent(20), { focus: 'part-1' });
  assert.match(prompt, /user: Find out why the build is slow\.\ncall: /);
  assert.match(prompt, /result: 4000 characters\n/);
  assert.match(prompt, /I never like it/);
  assert.deepEqual(Object.keys(seen.format[0][0]), ['index', 'kind', 'name', 'failed', 'text']);
  const [pruned] = seen.prune;
  assert.deepEqual([pruned.kind, pruned.failed], ['result', false]);
  const [request] = seen.build;
  assert.deepEqual([request.previous, request.sections, request.focus], [null, ['Plan'], 'part-1']);
  assert.deepEqual(seen.validate[0], {
    text: plan,
    sections: ['Plan'],
    tokens: seen.validate[0].tokens,
  });
  assert.equal(result.summary.by, 'local');
  assert.match(result.summary.text, /^Built by the host\./);
  assert.deepEqual(
    result.failures.map(({ effect, code }) => [effect, code]),
    [['summarize', 'refused']],
  );
  assert.ok(result.fits);
  assertValid(result.messages);
});

for (const [how, own] of Object.entries({
  throws() {
    throw new Error('not today');
  },
  'returns no string': () => 42,
  'returns a promise': async () => 'later',
})) {
  test(`a function that ${how} is reported, and ours goes on`, async () => {
    const summary = { format: own, prune: own, build: own, validate: own };
    const plain = await new Compactor(summarizing).compact(agent(20));
    const result = await new Compactor({ ...summarizing, summary }).compact(agent(20));
    assert.equal(JSON.stringify(result.summary.text), JSON.stringify(plain.summary.text));
    assert.deepEqual(result.failures.map((failure) => failure.effect).sort(), ['build', 'prune']);
    if (how === 'throws') assert.equal(result.failures[0].message, 'not today');
  });
}

test('what is no function, no template and no section is refused by name', () => {
  for (const [summary, path] of [
    [{ format: 'markdown' }, 'options.summary.format'],
    [{ validate: null }, 'options.summary.validate'],
    [{ template: 'novel' }, 'options.summary.template'],
    [{ sections: [{ about: 'no name' }] }, 'options.summary.sections.name'],
    [{ flavour: 'sweet' }, 'options.summary.flavour'],
    ['task', 'options.summary'],
  ]) {
    assert.throws(() => new Compactor({ ...summarizing, summary }), {
      code: 'invalid_option',
      path,
    });
  }
});

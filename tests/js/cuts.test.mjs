import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Session } from '../../pkg/index.js';

// The reading of Unicode that Node brings along judges where the engine cuts.
const segmenter = new Intl.Segmenter('en', { granularity: 'grapheme' });

/** Whether no grapheme of a text spans a place. */
const isEdge = (text, at) => segmenter.segment(text).containing(at).index === at;

const GRAPHEMES = {
  'families and skin tones': ['👩‍👩‍👧‍👦', '👍🏽', '🧑🏿‍🚀', '❤️‍🔥', '1️⃣'],
  flags: ['🇩🇪', '🇯🇵', '🏴󠁧󠁢󠁳󠁣󠁴󠁿'],
  'combining marks': ['e\u0301', 'a\u0308\u0323', 'n\u0303', 'o\u0302\u0301'],
  'Indic scripts': ['क्षि', 'নি', 'த்', 'కో', 'ക്ഷ'],
  'Thai, Lao, Khmer and Myanmar': ['กำ', 'ที่', 'ຳ', 'កំ', 'မြို့'],
  'Hangul in pieces': ['\u1100\u1161\u11a8', '한', '\u1112\u1161'],
  'Hebrew and Arabic with points': ['שָׁ', 'مُحَمَّد'],
  'letters alone': ['a', 'é', '汉', '😀'],
};

for (const [name, graphemes] of Object.entries(GRAPHEMES)) {
  test(`no cut falls into a grapheme: ${name}`, () => {
    // Every remainder of the length, so that cuts fall everywhere.
    for (let shift = 0; shift < 12; shift++) {
      const text = 'x'.repeat(shift) + graphemes.join('').repeat(1500);
      const session = new Session({ window: 2000, reserve: 0, stages: ['elide'] });
      session.plan([{ role: 'user', content: text }]);
      const [{ content }] = session.render();
      session.dispose();
      const [head, rest] = content.split(/\n?\[… /);
      const tail = rest.split(' …]\n')[1];
      assert.ok(head.length > 50 && tail.length > 50 && text.startsWith(head), name);
      assert.ok(text.endsWith(tail));
      assert.ok(isEdge(text, head.length), `head ends in ${JSON.stringify(head.slice(-8))}`);
      const at = text.length - tail.length;
      assert.ok(isEdge(text, at), `tail begins ${JSON.stringify(tail.slice(0, 8))}`);
    }
  });
}

test('what is elided is cut between lines, and JSON between members', () => {
  const cut = (content) => {
    const session = new Session({ window: 2000, reserve: 0, stages: ['elide'] });
    session.plan([{ role: 'user', content }]);
    const [message] = session.render();
    session.dispose();
    return message.content.split(/\[… .* …\]\n/);
  };
  const lines = Array.from({ length: 1000 }, (_, at) => `step ${at} of the build went well\n`);
  for (const part of cut(lines.join(''))) {
    for (const line of part.split('\n').slice(0, -1)) assert.ok(lines.includes(`${line}\n`), line);
  }
  const rows = Array.from({ length: 1000 }, (_, id) => ({ id, name: `n${id}` }));
  const [head, tail] = cut(JSON.stringify(rows));
  assert.match(head, /[,}]\n$/);
  assert.match(tail, /^[{",]/);
});

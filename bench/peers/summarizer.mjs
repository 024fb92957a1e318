// The summarizer that all policies share: deterministic, extractive, without a model.
import { identifiers } from '../../pkg/replay/index.js';

/** The sections that validators of several packages look for. */
const SECTIONS = [
  'Session intent',
  'Current state',
  'Key facts & decisions',
  'Artifacts',
  'Constraints & preferences',
  'Next steps',
];

/** Characters of the whole, some 1,200 tokens; models write about as much when asked for a page. */
const SIZE = 4_800;
const LINE = 240;

const TELLING =
  /\b(error|fail|fixed|found|because|decid|must|never|always|todo|next|pass|result|root cause)/i;

/**
 * A summary of a prompt: the lines that say most, newest first, until the page is full, and the
 * paths that are named most often. Lines of an earlier summary in the prompt compete with the rest.
 */
export function summarize(prompt) {
  const lines = prompt
    .split('\n')
    .map((text) => text.replace(/\s+/g, ' ').trim())
    .filter((text) => text.length > 20 && !text.startsWith('<') && !text.startsWith('#'));
  const seen = new Set();
  const ranked = lines
    .map((text, at) => ({ text: text.slice(0, LINE), at }))
    .filter(({ text }) => !seen.has(text) && seen.add(text))
    .map((line) => ({ ...line, worth: worth(line.text) + line.at / lines.length }))
    .sort((a, b) => b.worth - a.worth);
  const chosen = [];
  let size = 0;
  for (const line of ranked) {
    if (size + line.text.length > SIZE * 0.7) break;
    size += line.text.length + 3;
    chosen.push(line);
  }
  chosen.sort((a, b) => a.at - b.at);
  const names = new Map();
  for (const line of lines) {
    for (const name of identifiers(line)) names.set(name, (names.get(name) ?? 0) + 1);
  }
  const often = [...names].sort((a, b) => b[1] - a[1]).map(([name]) => name);
  const artifacts = [];
  for (const name of often) {
    if (size + name.length > SIZE) break;
    size += name.length + 2;
    artifacts.push(name);
  }
  const third = Math.ceil(chosen.length / 3);
  const list = (from, to) =>
    chosen
      .slice(from, to)
      .map(({ text }) => `- ${text}`)
      .join('\n');
  const bodies = [
    list(0, third),
    list(third * 2),
    list(third, third * 2),
    artifacts.join(', '),
    '- as stated above',
    '- go on from the current state',
  ];
  return SECTIONS.map((section, at) => `## ${section}\n${bodies[at] || '- none'}`).join('\n\n');
}

function worth(text) {
  return Math.min(identifiers(text).size, 4) + (TELLING.test(text) ? 2 : 0);
}

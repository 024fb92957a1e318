// The tables that the README shows, made from what results.json holds.
const share = (part, all) => (all === 0 ? '–' : `${((100 * part) / all).toFixed(0)} %`);

const line = (cells) => `| ${cells.join(' | ')} |`;

/** A table whose first column is words, and whose others are numbers. */
function table(head, rows) {
  const marks = head.map((_, at) => (at === 0 ? '---' : '---:'));
  return [line(head), `|${marks.join('|')}|`, ...rows.map(line)].join('\n');
}

const millions = (tokens) => (tokens / 1e6).toFixed(2);

/** What is said of a policy at one window; of sessions that it failed on only how many. */
const COLUMNS = {
  policy: ({ policy, total }) =>
    total.failed > 0 ? `${policy} (failed on ${total.failed})` : policy,
  'cost, M': ({ total }) => millions(total.cost),
  summaries: ({ total }) => share(total.summaryCost, total.cost),
  rewrites: ({ total }) => total.rewrites,
  uses: ({ total }) => total.retention.used,
  visible: ({ total: { retention: kept } }) => share(kept.visible, kept.used),
  recallable: ({ total: { retention: kept } }) => share(kept.recallable, kept.used),
  lost: ({ total: { retention: kept } }) => share(kept.lost, kept.used),
  refused: ({ total }) => total.refused,
  over: ({ total }) => total.over,
  'ms a call': ({ total }) => total.meanMilliseconds.toFixed(1),
};

/** These entries of results.json, with all columns but those that are left out. */
export function windowTable(entries, without = []) {
  const columns = Object.entries(COLUMNS).filter(([name]) => !without.includes(name));
  const rows = entries.map((entry) => columns.map(([, cell]) => cell(entry)));
  return table(
    columns.map(([name]) => name),
    rows,
  );
}

/** What the README shows of the window of 32k. */
export function readmeTable(results) {
  const entries = results.filter(({ window }) => window === 32768);
  return windowTable(entries, ['summaries', 'uses']);
}

/** Of tidemark the default alone, and all others, at all windows. */
export function summaryTable(results) {
  const windows = [...new Set(results.map(({ window }) => window))].sort((a, b) => a - b);
  const names = [...new Set(results.map(({ policy }) => policy))].filter(
    (name) => !name.startsWith('tidemark') || name.startsWith('tidemark, default'),
  );
  const rows = names.map((name) => [
    name,
    ...windows.map((window) => {
      const found = results.find((entry) => entry.window === window && entry.policy === name);
      if (!found) return '';
      const { cost, refused, over, failed, retention: kept } = found.total;
      const note = failed > 0 ? ` (failed on ${failed})` : '';
      const shares = [share(kept.visible, kept.used), share(kept.lost, kept.used)];
      return `${[millions(cost), ...shares, refused + over].join(', ')}${note}`;
    }),
  ]);
  return table(['policy', ...windows.map((window) => `${window / 1024}k`)], rows);
}

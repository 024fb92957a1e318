// The tables that the README shows, made from what results.json holds.
export const share = (part, all) => (all === 0 ? '–' : `${((100 * part) / all).toFixed(0)} %`);

const line = (cells) => `| ${cells.join(' | ')} |`;

/** A table whose first column is words, and whose others are numbers. */
export function table(head, rows) {
  const marks = head.map((_, at) => (at === 0 ? '---' : '---:'));
  return [line(head), `|${marks.join('|')}|`, ...rows.map(line)].join('\n');
}

const millions = (tokens) => (tokens / 1e6).toFixed(2);

/** Every policy at one window; sessions that it failed on are left out, and counted. */
export function windowTable(results, window) {
  const rows = results
    .filter((entry) => entry.window === window)
    .map(({ policy, total: { retention: kept, ...all } }) => [
      all.failed > 0 ? `${policy} (failed on ${all.failed})` : policy,
      millions(all.cost),
      all.rewrites,
      share(kept.visible, kept.used),
      share(kept.recallable, kept.used),
      share(kept.lost, kept.used),
      all.refused,
      all.over,
      all.meanMilliseconds.toFixed(1),
    ]);
  const head = 'policy|cost, M|rewrites|visible|recallable|lost|refused|over|ms'.split('|');
  return table(head, rows);
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

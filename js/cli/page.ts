// The script of the report: draws its charts.
import uPlot from 'uplot';
import type { PageData, PageWay } from './report.js';

const element = (id: string): HTMLElement => {
  const found = document.getElementById(id);
  if (!found) throw new Error(`#${id} is missing`);
  return found;
};

const data = JSON.parse(element('data').textContent ?? '') as PageData;
const dark = matchMedia('(prefers-color-scheme: dark)').matches;
const ink = dark ? '#93a1b3' : '#5b6776';
const grid = { stroke: dark ? '#2a3441' : '#dfe4ea', width: 1 };
const COLORS = [
  '#2f7ed8',
  '#e4772e',
  '#2aa876',
  '#b455c9',
  '#d6336c',
  '#8a9a1f',
  '#1aa3b8',
  '#a0693c',
  '#6b6fd6',
  '#e0a800',
  '#7d8894',
];
const colorOf = (at: number) => COLORS[at % COLORS.length] ?? '#888';
const comma = (number: number) => Math.round(number).toLocaleString('en-US');
const percent = (share: number) => `${(share * 100).toFixed(share > 0 && share < 0.1 ? 1 : 0)}%`;
const sum = (numbers: readonly number[]) => numbers.reduce((total, number) => total + number, 0);

/** As many digits as the smallest total needs, everywhere. */
const digits = data.ways.some(({ cost }) => cost < 1) ? 4 : 2;

function money(amount: number): string {
  return data.currency === 'USD'
    ? `$${amount.toFixed(digits)}`
    : `${amount.toFixed(digits)} ${data.currency}`;
}

const short = (tokens: number) =>
  tokens >= 1e6
    ? `${+(tokens / 1e6).toFixed(1)}M`
    : tokens >= 1e3
      ? `${+(tokens / 1e3).toFixed(1)}k`
      : `${tokens}`;

// ---- words and tables ------------------------------------------------------------------

element('title').textContent = data.title;
const calls = data.ways[0]?.tokens.length ?? 0;
const clock = data.timed ? 'times of the log' : '20 seconds between calls';
element('about').textContent =
  `${comma(data.messages)} messages, ${comma(calls)} model calls, window ${comma(data.window)}, prices ${data.prices}, ${clock}`;
element('foot').textContent =
  'Made by tidemark replay. Nothing was sent to a provider: sizes are estimates, costs follow from the prices and rules of a prompt cache.';

function cell(row: HTMLTableRowElement, text: string, kind?: string): HTMLTableCellElement {
  const made = row.insertCell();
  made.textContent = text;
  if (kind) made.className = kind;
  return made;
}

const fitting = data.ways.filter(({ over }) => over === 0);
const cheapest = Math.min(...fitting.map(({ cost }) => cost));
const table = element('summary') as HTMLTableElement;
const head = table.createTHead().insertRow();
for (const title of [
  'policy',
  'cost',
  'sent',
  'cached',
  'bursts',
  'visible',
  'lost',
  'over the window',
  'refused',
  'largest',
]) {
  const made = document.createElement('th');
  made.textContent = title;
  head.append(made);
}
const body = table.createTBody();
for (const [at, way] of data.ways.entries()) {
  const row = body.insertRow();
  const sent = sum(way.tokens);
  const { used, visible, lost } = way.retention;
  const swatch = document.createElement('span');
  swatch.className = 'swatch';
  swatch.style.background = colorOf(at);
  cell(row, way.policy).prepend(swatch);
  cell(row, money(way.cost), way.cost === cheapest && way.over === 0 ? 'good' : undefined);
  cell(row, comma(sent));
  cell(row, percent(sum(way.read) / Math.max(sent, 1)));
  cell(row, comma(way.rewrites));
  cell(row, used > 0 ? percent(visible / used) : '–');
  cell(row, used > 0 ? percent(lost / used) : '–', lost > 0 ? 'bad' : undefined);
  cell(row, comma(way.over), way.over > 0 ? 'bad' : undefined);
  cell(row, comma(way.refused), way.refused > 0 ? 'bad' : undefined);
  cell(row, comma(way.largest));
}

const shares = element('retention');
const withUses = data.ways.filter(({ retention }) => retention.used > 0);
if (withUses.length === 0) shares.textContent = 'No answer uses one: nothing had left the view.';
for (const { policy, retention } of withUses) {
  const { used, visible, recallable, lost } = retention;
  const name = document.createElement('div');
  name.textContent = policy;
  const stack = document.createElement('div');
  stack.className = 'stack';
  for (const [count, color] of [
    [visible, '#2aa876'],
    [recallable, '#e0a800'],
    [lost, '#d6336c'],
  ] as const) {
    const part = document.createElement('span');
    part.style.width = `${(count / used) * 100}%`;
    part.style.background = color;
    stack.append(part);
  }
  const words = document.createElement('div');
  words.textContent = `${percent(visible / used)} seen, ${percent(recallable / used)} by recall, ${percent(lost / used)} lost`;
  shares.append(name, stack, words);
}

// ---- charts ----------------------------------------------------------------------------

const numbers = Array.from({ length: calls }, (_, at) => at + 1);

function axes(format: (value: number) => string): uPlot.Axis[] {
  return [
    { stroke: ink, grid, ticks: grid, label: 'model call', labelSize: 22, size: 36 },
    {
      stroke: ink,
      grid,
      ticks: grid,
      size: 70,
      values: (_, ticks) => ticks.map((tick) => format(tick)),
    },
  ];
}

function draw(
  place: HTMLElement,
  series: uPlot.Series[],
  columns: number[][],
  format: (value: number) => string,
  rest: Partial<uPlot.Options> = {},
): uPlot {
  const width = () => Math.max(280, place.clientWidth - 16);
  const options: uPlot.Options = {
    width: width(),
    height: 320,
    scales: { x: { time: false }, y: { range: (_, __, most) => [0, most * 1.05 || 1] } },
    axes: axes(format),
    series: [{ label: 'call' }, ...series],
    cursor: { points: { size: 5 } },
    ...rest,
  };
  const made = new uPlot(options, [numbers, ...columns] as uPlot.AlignedData, place);
  addEventListener('resize', () => made.setSize({ width: width(), height: 320 }));
  return made;
}

const line = (way: PageWay, at: number, format: (value: number) => string): uPlot.Series => ({
  label: way.policy,
  stroke: colorOf(at),
  width: 1.75,
  points: { show: calls < 3 },
  value: (_, value) => (value === null ? '' : format(value)),
});

draw(
  element('sizes'),
  [
    ...data.ways.map((way, at) => line(way, at, comma)),
    {
      label: 'usable',
      stroke: ink,
      width: 1,
      dash: [6, 4],
      points: { show: false },
      value: (_, value) => comma(value ?? 0),
    },
  ],
  [...data.ways.map(({ tokens }) => tokens), numbers.map(() => data.usable)],
  short,
);

draw(
  element('spent'),
  data.ways.map((way, at) => line(way, at, money)),
  data.ways.map(({ spent }) => {
    let total = 0;
    return spent.map((amount) => {
      total += amount;
      return total;
    });
  }),
  money,
);

const chosen = element('chosen') as HTMLSelectElement;
for (const { policy } of data.ways) chosen.add(new Option(policy, policy));
chosen.hidden = data.ways.length < 2;
let cached: uPlot | undefined;

/** Areas that stand on each other: the sums are drawn, the largest first. */
function drawCached(): void {
  cached?.destroy();
  const way = data.ways[chosen.selectedIndex] ?? data.ways[0];
  if (!way) return;
  const written = way.read.map((read, at) => read + (way.written[at] ?? 0));
  const area = (label: string, color: string, own: readonly number[]): uPlot.Series => ({
    label,
    stroke: color,
    fill: color,
    width: 1,
    points: { show: false },
    value: (_, __, ___, at) => (at === null || at === undefined ? '' : comma(own[at] ?? 0)),
  });
  const parts: [uPlot.Series, number[]][] = [
    [area('neither', dark ? '#7d3a44' : '#f0b3b9', way.plain), way.tokens],
    [area('written to the cache', dark ? '#8a6a2a' : '#f3d598', way.written), written],
    [area('read from the cache', dark ? '#2c6b52' : '#a6dcc5', way.read), way.read],
  ];
  cached = draw(
    element('cached'),
    parts.map(([series]) => series),
    parts.map(([, column]) => column),
    short,
  );
}
chosen.addEventListener('change', drawCached);
drawCached();

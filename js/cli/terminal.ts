// What is printed: colours, bars and tables, as wide as the terminal, and only there.
import { stripVTControlCharacters } from 'node:util';
import cliProgress from 'cli-progress';
import pico from 'picocolors';
import stringWidth from 'string-width';

type Colors = ReturnType<typeof pico.createColors>;

/** Columns where there is no terminal. */
const WIDE = 100;

/** How a terminal is to be used. */
export interface TerminalOptions {
  /** Answers are JSON. */
  json: boolean;
  /** Colours whatever the terminal is; undefined: on a terminal. */
  color: boolean | undefined;
  /** Neither progress nor notes. */
  quiet: boolean;
}

/** Standard output for answers, standard error for notes and progress. */
export class Terminal {
  readonly json: boolean;
  readonly quiet: boolean;
  /** Columns of standard output. */
  readonly width: number;
  readonly color: Colors;
  /** The same for standard error. */
  readonly noteColor: Colors;
  /** Whether bars may be drawn with blocks of Unicode. */
  readonly #blocks: boolean;

  constructor({ json, color, quiet }: TerminalOptions) {
    this.json = json;
    this.quiet = quiet;
    const columns = process.stdout.isTTY ? process.stdout.columns : Number(process.env.COLUMNS);
    this.width = Math.max(24, Math.min(columns || WIDE, 140));
    this.color = pico.createColors(color ?? colourful(process.stdout));
    this.noteColor = pico.createColors(color ?? colourful(process.stderr));
    const { LC_ALL, LC_CTYPE, LANG } = process.env;
    const locale = LC_ALL || LC_CTYPE || LANG || '';
    this.#blocks = locale !== 'C' && locale !== 'POSIX' && process.env.TERM !== 'linux';
  }

  /** Writes a line of the answer. */
  print(line = ''): void {
    process.stdout.write(`${line}\n`);
  }

  /** Writes the answer as JSON. */
  answer(value: unknown): void {
    this.print(JSON.stringify(value, null, 2));
  }

  /** Writes something beside the answer. */
  note(line: string): void {
    if (!this.quiet) process.stderr.write(`${line}\n`);
  }

  warn(line: string): void {
    process.stderr.write(`${this.noteColor.yellow('warning:')} ${printable(line)}\n`);
  }

  title(text: string): string {
    return this.color.bold(printable(text));
  }

  /** A bar of at most `width` columns for a share in [0, 1]. */
  bar(share: number, width: number): string {
    const eighths = Math.round(Math.max(0, Math.min(1, share)) * width * 8);
    if (!this.#blocks) return '#'.repeat(Math.round(eighths / 8));
    const rest = ['', '▏', '▎', '▍', '▌', '▋', '▊', '▉'][eighths % 8] ?? '';
    return '█'.repeat(Math.floor(eighths / 8)) + rest;
  }

  /**
   * Rows of a name, a number and a share as bars; `most` is the number of a full bar. Names are cut,
   * and bars left out, where the terminal is too narrow.
   */
  bars(rows: readonly BarRow[], most = Math.max(1, ...rows.map((row) => row.value))): string[] {
    const number = Math.max(1, ...rows.map((row) => comma(row.value).length));
    const extra = Math.max(0, ...rows.map((row) => stringWidth(row.note ?? '')));
    const longest = Math.max(1, ...rows.map((row) => stringWidth(row.name)));
    const free = this.width - number - 4 - (extra > 0 ? extra + 2 : 0);
    const name = Math.max(8, Math.min(longest, Math.floor(free * 0.6)));
    const bar = free - name;
    return rows.map((row) => {
      const drawn = bar >= 8 ? this.bar(row.value / most, bar) : '';
      const pad = bar >= 8 ? ' '.repeat(Math.max(0, bar - stringWidth(drawn))) : '';
      const note = row.note && bar >= 0 ? `  ${this.color.dim(row.note)}` : '';
      const value = comma(row.value).padStart(number);
      const line = `${fit(row.name, name)} ${value} ${this.color.cyan(drawn)}${note && pad}${note}`;
      return ` ${line.trimEnd()}`;
    });
  }

  /** Columns of text; numbers stand right. The first column gives way where it gets narrow. */
  table(head: readonly string[], rows: readonly (readonly string[])[]): string[] {
    const right = head.map((_, at) => at > 0 && rows.every((row) => isNumber(row[at] ?? '')));
    const widths = head.map((title, at) =>
      Math.max(stringWidth(title), ...rows.map((row) => stringWidth(row[at] ?? ''))),
    );
    const gap = 2;
    const shown = [...widths];
    // Columns from the right leave until the rest has room.
    let total = () => shown.reduce((sum, width) => sum + width + gap, -gap);
    const first = Math.min(widths[0] ?? 0, 16);
    while (shown.length > 2 && total() - (shown[0] ?? 0) + first > this.width) shown.pop();
    total = () => shown.reduce((sum, width) => sum + width + gap, -gap);
    shown[0] = Math.max(8, Math.min(shown[0] ?? 0, (shown[0] ?? 0) + this.width - total()));
    const write = (row: readonly string[]) =>
      shown
        .map((width, at) => {
          const text = fit(row[at] ?? '', width);
          return right[at] ? text.trimEnd().padStart(width) : text;
        })
        .join('  ')
        .trimEnd();
    return [this.color.dim(write(head)), ...rows.map(write)];
  }

  /** Shows how far something is, on a terminal only; returns what is told, and what ends it. */
  progress(title: string): Progress {
    if (!process.stderr.isTTY || this.quiet || this.json) return { to() {}, stop() {} };
    const room = Math.max(10, Math.min(40, (process.stderr.columns ?? 80) - title.length - 12));
    const bar = new cliProgress.SingleBar({
      format: `${title} {bar} {percentage}%`,
      barsize: room,
      barCompleteChar: this.#blocks ? '█' : '#',
      barIncompleteChar: this.#blocks ? '░' : '-',
      stream: process.stderr,
      clearOnComplete: true,
      hideCursor: true,
      // Ctrl-C is ours: it also removes what is half written.
      gracefulExit: false,
      fps: 8,
    });
    let started = false;
    const running: Progress = {
      to(done, all) {
        if (!started) bar.start(Math.max(all, 1), 0);
        started = true;
        bar.setTotal(Math.max(all, 1));
        bar.update(done);
      },
      stop() {
        if (started) bar.stop();
        open.delete(running);
      },
    };
    open.add(running);
    return running;
  }
}

/** Something that takes a while. */
export interface Progress {
  to(done: number, all: number): void;
  stop(): void;
}

const open = new Set<Progress>();

/** Ends every progress bar: the cursor is back. */
export function stopProgress(): void {
  for (const running of [...open]) running.stop();
}

export interface BarRow {
  name: string;
  value: number;
  /** Something to say behind the bar. */
  note?: string | undefined;
}

function colourful(stream: NodeJS.WriteStream): boolean {
  const { NO_COLOR, FORCE_COLOR, TERM } = process.env;
  if (NO_COLOR) return false;
  if (FORCE_COLOR && FORCE_COLOR !== '0') return true;
  return stream.isTTY === true && TERM !== 'dumb' && FORCE_COLOR !== '0';
}

/** 1234567 as 1,234,567. */
export const comma = (number: number) => Math.round(number).toLocaleString('en-US');

/** A share as a whole percentage. */
export const percent = (share: number) =>
  Number.isFinite(share) ? `${(share * 100).toFixed(share < 0.1 && share > 0 ? 1 : 0)}%` : '–';

export const plural = (count: number, one: string, more = `${one}s`) =>
  `${comma(count)} ${count === 1 ? one : more}`;

const isNumber = (text: string) =>
  text === '' || text === '–' || /^[$€-]?[\d.,]+ ?[%kM]?s?$/.test(text);

/** A text in exactly so many columns: cut, or filled up. */
export function fit(text: string, width: number): string {
  const size = stringWidth(text);
  if (size <= width) return text + ' '.repeat(width - size);
  let out = '';
  for (const character of stripVTControlCharacters(text)) {
    if (stringWidth(out + character) > width - 1) break;
    out += character;
  }
  return `${out}…${' '.repeat(Math.max(0, width - 1 - stringWidth(out)))}`;
}

/** The beginning of a text on one line, without what would move the cursor. */
export function glimpse(text: string, length = 80): string {
  const line = text
    .slice(0, length * 4)
    .replace(/[\s\p{Cc}]+/gu, ' ')
    .trim();
  return line.length > length ? `${line.slice(0, length - 1)}…` : line;
}

/** A text without what would move the cursor or colour the screen; its lines stay. */
export const printable = (text: string) =>
  stripVTControlCharacters(text).replace(/[^\P{Cc}\n\t]/gu, '�');

// The elements of a JSON array that comes in chunks: a document of any size, an element at a time.

/** An element, and where it begins. Lines and columns count from 1. */
export interface Element {
  text: string;
  line: number;
  column: number;
}

/** Where the text is no array: at its end, or behind it. */
export class BrokenArray extends Error {
  readonly line: number;
  readonly column: number;

  constructor(message: string, line: number, column: number) {
    super(message);
    this.line = line;
    this.column = column;
  }
}

const OUTSIDE = /["[\]{},\n]/g;
const INSIDE = /["\\]/g;

/**
 * Cuts an array into the texts of its elements, which are not looked into: whether each is JSON is
 * for its reader to say.
 */
export async function* elements(chunks: AsyncIterable<string>): AsyncGenerator<Element> {
  let depth = 0;
  let quoted = false;
  let closed = false;
  let count = 0;
  /** Characters before the chunk, and before the line. */
  let before = 0;
  let lineStart = 0;
  let line = 1;
  /** Of the element: its text so far, and where it begins. */
  let parts: string[] = [];
  let start = { line: 1, column: 1 };
  /** Where to look next in the chunk: past its end where that cuts an escape. */
  let at = 0;
  const place = (index: number) => ({ line, column: before + index - lineStart + 1 });
  for await (const chunk of chunks) {
    let from = 0;
    const taken = (end: number): Element => {
      const whole = [...parts, chunk.slice(from, end)].join('');
      parts = [];
      const text = whole.trimStart();
      const blank = whole.slice(0, whole.length - text.length).split('\n');
      const behind = blank.at(-1)?.length ?? 0;
      const lines = blank.length - 1;
      count += 1;
      return {
        text,
        line: start.line + lines,
        column: lines === 0 ? start.column + behind : behind + 1,
      };
    };
    while (at < chunk.length) {
      const mark = quoted ? INSIDE : OUTSIDE;
      mark.lastIndex = at;
      const found = mark.exec(chunk);
      if (!found) break;
      const { index } = found;
      at = index + 1;
      const [sign] = found;
      if (sign === '\\') at += 1;
      else if (sign === '"') quoted = !quoted;
      else if (sign === '\n') {
        line += 1;
        lineStart = before + index + 1;
      } else if (closed) {
        break;
      } else if (sign === '[' || sign === '{') {
        depth += 1;
        if (depth > 1) continue;
        from = at;
        start = place(at);
      } else if (sign === ',') {
        if (depth !== 1) continue;
        yield taken(index);
        from = at;
        start = place(at);
      } else {
        depth -= 1;
        if (depth > 0) continue;
        const last = taken(index);
        if (count > 1 || last.text !== '') yield last;
        closed = true;
        from = at;
        start = place(at);
      }
    }
    if (closed && chunk.slice(from).trim() !== '') {
      throw new BrokenArray('the text goes on behind the array', start.line, start.column);
    }
    if (!closed && depth > 0) parts.push(chunk.slice(from));
    at = Math.max(at - chunk.length, 0);
    before += chunk.length;
  }
  if (!closed) {
    const { line, column } = place(0);
    throw new BrokenArray('close bracket expected: the text ends here', line, column);
  }
}

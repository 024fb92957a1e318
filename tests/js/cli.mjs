// The command line as a process, for the tests of it.
import { spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after } from 'node:test';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('../..', import.meta.url));

export const program = join(root, 'pkg/cli/main.js');
export const data = (name) => join(root, 'tests/data', name);
export const recorded = (name) => JSON.parse(readFileSync(data(name), 'utf8'));

/** A folder that goes when the tests are over. */
export function folder() {
  const made = mkdtempSync(join(tmpdir(), 'tidemark-cli-'));
  after(() => rmSync(made, { recursive: true, force: true }));
  return made;
}

/** The environment without what would change the answers. */
export function plainEnv(more = {}) {
  const taken =
    /^(TIDEMARK_|OPENAI_|ANTHROPIC_|NO_COLOR|FORCE_COLOR|COLUMNS|NODE_OPTIONS|NODE_TEST)/;
  const kept = Object.entries(process.env).filter(([name]) => !taken.test(name));
  return { ...Object.fromEntries(kept), LANG: 'C.UTF-8', LC_ALL: 'C.UTF-8', ...more };
}

const aside = folder();

export function start(args, { cwd = aside, env = {}, node = [] } = {}) {
  return spawn(process.execPath, [...node, program, ...args], { cwd, env: plainEnv(env) });
}

/** Runs it to its end; `input` is what it reads from stdin. */
export async function tidemark(args, { input = '', ...options } = {}) {
  const child = start(args, options);
  let out = '';
  let err = '';
  child.stdout.setEncoding('utf8').on('data', (text) => {
    out += text;
  });
  child.stderr.setEncoding('utf8').on('data', (text) => {
    err += text;
  });
  child.stdin.on('error', () => {});
  child.stdin.end(input);
  const code = await ended(child);
  return { code, out, err, json: () => JSON.parse(out) };
}

export function ended(child) {
  return new Promise((resolve, reject) => {
    child.on('error', reject);
    child.on('close', (code, signal) => resolve(code ?? signal));
  });
}

/** A provider on loopback; `answer` gets each request as it came, and gives status and body. */
export async function provider(answer) {
  const requests = [];
  const server = createServer(async (request, response) => {
    let text = '';
    for await (const chunk of request.setEncoding('utf8')) text += chunk;
    const { url, headers } = request;
    requests.push({ url, headers, body: JSON.parse(text) });
    const given = answer(requests.length, requests.at(-1));
    // Undefined: it never answers.
    if (given === undefined) return;
    const { status = 200, body, more = {} } = given;
    response.writeHead(status, { 'content-type': 'application/json', ...more });
    response.end(JSON.stringify(body));
  });
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  after(() => {
    server.closeAllConnections();
    server.close();
  });
  return { url: `http://127.0.0.1:${server.address().port}`, requests };
}

// A project of a user's: the packed tarball installed in a clean folder, with the conformance
// script beside it.
import assert from 'node:assert/strict';
import { execFile, spawn } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { build } from 'esbuild';

export const root = fileURLToPath(new URL('../..', import.meta.url));
const here = join(root, 'tests/runtimes');

/** A program of tests/runtimes/node_modules. */
export const bin = (name) => join(here, 'node_modules/.bin', name);

/** Bun itself: what npm links for it wants an install script first. */
export const bunProgram = () => bin(`../@oven/bun-${process.platform}-${process.arch}/bin/bun`);

// The npm that started the tests tells every npm below it to work in js/ too.
const env = Object.fromEntries(
  Object.entries(process.env).filter(
    ([name]) => !/^npm_config_(local_|global_)?prefix$/.test(name),
  ),
);

/** Runs a program and gives back what it printed; its output is in the error when it fails. */
export async function run(command, args, cwd) {
  const options = { cwd, env, maxBuffer: 1 << 26, timeout: 300_000 };
  try {
    const { stdout } = await promisify(execFile)(command, args, options);
    return stdout;
  } catch (error) {
    throw new Error(`${command} ${args.join(' ')}\n${error.message}\n${error.stdout}`);
  }
}

const read = (file) => readFileSync(join(root, 'tests', file), 'utf8');

/** Golden vectors and the transcripts that they name, as the conformance script takes them. */
export function goldenCases() {
  const vectors = JSON.parse(read('golden.json'));
  const files = [...new Set(vectors.map(({ file }) => file))];
  const transcripts = Object.fromEntries(
    files.map((file) => [file, JSON.parse(read(`data/${file}`))]),
  );
  return { vectors, transcripts };
}

/**
 * Packs pkg/ and installs the tarball.
 * @returns the folder, a function that writes files to it, and one that removes it all
 */
export async function cleanProject() {
  const folder = mkdtempSync(join(tmpdir(), 'tidemark-runtimes-'));
  const write = (name, text) => {
    mkdirSync(dirname(join(folder, name)), { recursive: true });
    writeFileSync(join(folder, name), text);
  };
  const pack = ['pack', '--json', '--pack-destination', folder];
  const [{ filename }] = JSON.parse(await run('npm', pack, join(root, 'pkg')));
  write('package.json', '{ "name": "consumer", "private": true, "type": "module" }');
  const install = ['install', '--offline', '--no-audit', '--no-fund', `./${filename}`];
  await run('npm', install, folder);
  for (const file of ['conformance.js', 'golden.js']) cpSync(join(here, file), join(folder, file));
  write('cases.js', `export default ${JSON.stringify(goldenCases())};\n`);
  return {
    folder,
    tarball: join(folder, filename),
    write,
    remove: () => rmSync(folder, { recursive: true, force: true }),
  };
}

/** As wrangler does it: one script, and the wasm beside it as a module of its own. */
export async function bundleForWorkerd(entry) {
  const wasm = [];
  const plugin = {
    name: 'wasm-modules',
    setup({ onResolve }) {
      onResolve({ filter: /\.wasm$/ }, ({ path, resolveDir }) => {
        wasm.push(join(resolveDir, path));
        return { path: './tidemark.wasm', external: true };
      });
    },
  };
  const { outputFiles } = await build({
    entryPoints: [entry],
    bundle: true,
    write: false,
    format: 'esm',
    target: 'es2022',
    conditions: ['workerd', 'worker', 'browser'],
    external: ['cloudflare:*'],
    plugins: [plugin],
  });
  assert.equal(wasm.length, 1, 'one wasm file is imported');
  const script = outputFiles[0].text;
  assert.ok(!script.includes('AGFzbQ'), 'no inlined wasm');
  return [
    { type: 'ESModule', path: 'worker.mjs', contents: script },
    { type: 'CompiledWasm', path: 'tidemark.wasm', contents: readFileSync(wasm[0]) },
  ];
}

/** A real redis-server on a port of its own, without files. */
export async function startRedis() {
  const probe = createServer();
  await new Promise((resolve) => probe.listen(0, '127.0.0.1', resolve));
  const { port } = probe.address();
  await new Promise((resolve) => probe.close(resolve));
  const args = ['--port', `${port}`, '--bind', '127.0.0.1', '--save', '', '--appendonly', 'no'];
  const server = spawn('redis-server', args, { stdio: ['ignore', 'pipe', 'inherit'] });
  await new Promise((resolve, reject) => {
    server.on('error', reject);
    server.on('exit', (code) => reject(new Error(`redis-server: exit ${code}`)));
    server.stdout.on('data', (text) => /Ready to accept/.test(text) && resolve());
  });
  return { port, stop: () => server.kill() };
}

// Every developer command, for one: node js/dev.mjs test. js/package.json lists them all.
// Each first brings the machine to where it can run, skipping what is there
// already, and prints a line with its time for each step; the first failure ends it.
import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import {
  bin,
  buildComponent,
  buildPackage,
  buildWasm,
  root,
  run,
  tools,
  wasmEnv,
} from './build.mjs';
import { checkSize } from './size.mjs';

// `npm --prefix js` tells every npm below it to work in js/ as well.
for (const name of Object.keys(process.env)) {
  if (/^npm_(config_(local_|global_)?prefix|package_|lifecycle_|command)/.test(name)) {
    delete process.env[name];
  }
}

const js = join(root, 'js');
const say = (text) => console.log(`[tidemark] ${text}`);

/** What the test runners counted, over all of them. */
const counts = { passed: 0, failed: 0, skipped: 0 };

/** Runs one step, prints its time and what it returned; its failure ends the process. */
async function step(name, action) {
  const start = performance.now();
  const seconds = () => `${((performance.now() - start) / 1000).toFixed(1)} s`;
  try {
    const note = await action();
    say(`${name}: ${seconds()}${note ? ` (${note})` : ''}`);
  } catch (error) {
    if (error.output !== undefined && !error.shown) process.stdout.write(error.output);
    say(`${name}: FAILED after ${seconds()}: ${error.message}`);
    if (counts.failed > 0) summary();
    process.exit(1);
  }
}

function summary() {
  const skipped = counts.skipped > 0 ? `, ${counts.skipped} skipped` : '';
  console.log(`${counts.passed} passed, ${counts.failed} failed${skipped}`);
}

// ---- what every command needs ------------------------------------------------

async function setUp() {
  await step('set-up', async () => {
    const { status } = spawnSync('bash', [join(root, 'js/setup.sh')], { stdio: 'inherit' });
    if (status !== 0) throw new Error('js/setup.sh says why');
    return `tools in ${tools}`;
  });
  await step('npm ci', () => installPackages(js));
  await step('npm ci in tests/sdk', () => installPackages(join(root, 'tests/sdk')));
  await step('crates', async () => {
    await run('cargo', ['fetch', '--locked', '--target', 'wasm32-unknown-unknown']);
  });
}

/** What the tests in other runtimes need: a browser, a Redis, and packages of their own. */
async function setUpRuntimes() {
  await step('set-up of the runtimes', async () => {
    const args = [join(root, 'js/setup.sh'), 'runtimes'];
    const { status } = spawnSync('bash', args, { stdio: 'inherit' });
    if (status !== 0) throw new Error('js/setup.sh says why');
  });
  const folder = join(root, 'tests/runtimes');
  await step('npm ci of the runtimes', () => installPackages(folder));
  await step('wasmtime', async () => {
    process.env.TIDEMARK_WASMTIME = await installPython(join(folder, 'requirements.txt'));
  });
}

/** Installs a folder's node_modules, unless they were made from the same lock file. */
async function installPackages(folder) {
  const hash = createHash('sha256').update(`${process.platform} ${process.arch}`);
  for (const file of ['package.json', 'package-lock.json']) {
    hash.update(readFileSync(join(folder, file)));
  }
  const wanted = hash.digest('hex');
  const stamp = join(folder, 'node_modules', '.lock-hash');
  if (existsSync(stamp) && readFileSync(stamp, 'utf8') === wanted) return 'unchanged';
  await run('npm', ['ci', '--ignore-scripts', '--no-audit', '--no-fund'], { cwd: folder });
  writeFileSync(stamp, wanted);
}

/** The Python of a virtual environment that has these requirements; needs python3 with venv. */
async function installPython(requirements) {
  const hash = createHash('sha256').update(readFileSync(requirements)).digest('hex');
  const folder = join(tools, `python-${hash.slice(0, 12)}`);
  const python = join(folder, 'bin/python');
  const stamp = join(folder, '.complete');
  if (existsSync(stamp)) return python;
  await run('python3', ['-m', 'venv', '--clear', folder]);
  await run(python, ['-m', 'pip', 'install', '--quiet', '--requirement', requirements]);
  writeFileSync(stamp, '');
  return python;
}

async function build(options) {
  await step('wasm', () => buildWasm(options));
  await step('component', buildComponent);
  await step('package', buildPackage);
}

// ---- the checks ----------------------------------------------------------------

const denyWarnings = ['--', '-D', 'warnings'];

async function lintRust() {
  await step('rustfmt', async () => {
    await run('cargo', ['fmt', '--check']);
  });
  await step('clippy', async () => {
    await run('cargo', ['clippy', '--locked', '--all-targets', ...denyWarnings]);
  });
  await step('clippy for wasm32', async () => {
    const env = await wasmEnv();
    if (env.PATH.includes('rust-web')) return 'left out: the toolchain for wasm has no clippy';
    const target = ['--lib', '--target', 'wasm32-unknown-unknown'];
    for (const features of [[], ['--no-default-features', '--features', 'component']]) {
      await run('cargo', ['clippy', '--locked', ...target, ...features, ...denyWarnings], { env });
    }
  });
}

async function lintScripts() {
  await step('biome', async () => {
    await run(bin('biome'), ['check', '--error-on-warnings', ...scripts], { cwd: js });
  });
}

// Biome takes its configuration from the folder that it runs in.
const scripts = ['.', '../tests/js', '../tests/runtimes', '../tests/sdk', '../www'];

async function testRust() {
  await step('cargo test', async () => {
    const options = ['test', '--locked', '--no-fail-fast'];
    // The same random transcripts each time; `npm run fuzz` draws new ones.
    const env = { PROPTEST_RNG_SEED: '1', ...process.env };
    const count = (output) => {
      const results = /^test result: .*? (\d+) passed; (\d+) failed; (\d+) ignored/gm;
      return [...output.matchAll(results)].map((found) => found.slice(1).map(Number));
    };
    return counted(() => run('cargo', options, { env, show: true }), count);
  });
}

async function testScripts(name, files) {
  await step(name, async () => {
    if (files.length === 0) throw new Error('no test files');
    const options = ['--test', '--test-reporter=spec'];
    const count = (output) => {
      const one = (key) => Number(new RegExp(`^ℹ ${key} (\\d+)$`, 'm').exec(output)?.[1] ?? 0);
      return [[one('pass'), one('fail') + one('cancelled'), one('skipped') + one('todo')]];
    };
    return counted(() => run(process.execPath, [...options, ...files], { show: true }), count);
  });
}

/** Adds up a runner's counts, whether or not all its tests passed. */
async function counted(runner, count) {
  const add = (output) => {
    let sum = 0;
    for (const [passed, failed, skipped] of count(output)) {
      counts.passed += passed;
      counts.failed += failed;
      counts.skipped += skipped;
      sum += passed;
    }
    return sum;
  };
  try {
    const passed = add(await runner());
    if (passed === 0) throw new Error('no test ran');
    return `${passed} passed`;
  } catch (error) {
    if (error.output !== undefined) add(error.output);
    throw error;
  }
}

/** Files of a folder, whole paths, in order; none when there is no such folder. */
async function filesIn(folder, pattern) {
  const dir = join(root, folder);
  const names = existsSync(dir) ? await readdir(dir) : [];
  return names
    .filter((name) => pattern.test(name))
    .sort()
    .map((name) => join(dir, name));
}

// ---- the commands ----------------------------------------------------------------

/** Hands the terminal to a script of ours; its exit code becomes this one's. */
function hand(file) {
  const { status } = spawnSync(process.execPath, [file, ...process.argv.slice(3)], {
    cwd: root,
    stdio: 'inherit',
  });
  if (status !== 0) process.exit(status ?? 1);
}

const commands = {
  /** `-- --debug`: panics with a message, functions with names, nothing optimised. */
  async build() {
    await setUp();
    await build({ debug: process.argv.includes('--debug') });
  },

  /**
   * Mutated inputs for every parser, a minute each unless `TIDEMARK_FUZZ_SECONDS` says otherwise;
   * then the property tests over ten times as many transcripts, drawn anew.
   */
  async fuzz() {
    await setUp();
    await step('fuzz', async () => {
      const env = { TIDEMARK_FUZZ_SECONDS: '60', ...process.env };
      await run('cargo', ['test', '--locked', '--test', 'fuzz', '--', '--nocapture'], {
        env,
        show: true,
      });
    });
    await step('property tests', async () => {
      const env = { PROPTEST_CASES: '2000', ...process.env };
      await run('cargo', ['test', '--locked', '--no-fail-fast'], { env, show: true });
    });
  },

  /** The checks that need no test run; the wasm is built only if there is none. */
  async check() {
    await setUp();
    await lintRust();
    if (!existsSync(join(root, 'pkg/wasm/inline.d.ts'))) await step('wasm', buildWasm);
    await lintScripts();
    await step('tsc', async () => {
      await run(bin('tsc'), ['-p', 'js/tsconfig.json', '--noEmit']);
      await run(bin('tsc'), ['-p', 'js/cli']);
    });
  },

  async test() {
    const start = performance.now();
    await setUp();
    await lintRust();
    await testRust();
    await build();
    await lintScripts();
    const files = await filesIn('tests/js', /\.test\.mjs$/);
    const packaging = join(root, 'tests/js/package.test.mjs');
    await testScripts(
      'node tests',
      files.filter((file) => file !== packaging),
    );
    await testScripts("tests with the vendors' SDKs", await filesIn('tests/sdk', /\.test\.mjs$/));
    await step('size', checkSize);
    await testScripts('package test', [packaging]);
    await setUpRuntimes();
    await testScripts('runtimes', await filesIn('tests/runtimes', /\.test\.mjs$/));
    say(`every check passed in ${((performance.now() - start) / 1000).toFixed(0)} s`);
    summary();
  },

  /** The packed package in every runtime, bundler and store, after the last build. */
  async runtimes() {
    await setUp();
    await build();
    await setUpRuntimes();
    await testScripts('runtimes', await filesIn('tests/runtimes', /\.test\.mjs$/));
    summary();
  },

  async demo() {
    await setUp();
    await build();
    hand(join(root, 'js/demo.mjs'));
  },

  async bench() {
    await setUp();
    await build();
    for (const file of await filesIn('bench', /\.mjs$/)) hand(file);
  },

  /** Counts the corpus with real tokenizers and fits src/count/families.rs to the counts. */
  async fit() {
    const folder = join(root, 'bench/count');
    await step('npm ci (tokenizers)', () => installPackages(folder));
    await step('tokens', async () => {
      await run(process.execPath, [join(folder, 'tokens.mjs')]);
    });
    await step('fit', async () => {
      const files = ['target/count/tokens.tsv', 'tests/corpus', 'src/count/families.rs'];
      const manifest = join(folder, 'Cargo.toml');
      const args = [
        'run',
        '--profile',
        'fit',
        '--bin',
        'fit',
        '--quiet',
        '--manifest-path',
        manifest,
        '--',
        ...files,
      ];
      const env = { ...process.env, CARGO_TARGET_DIR: join(root, 'target/count') };
      await run('cargo', args, { cwd: root, env, show: true });
    });
  },

  /** What the counter estimates against real tokenizers and other estimators, and how fast. */
  async report() {
    await setUp();
    const folder = join(root, 'bench/count');
    await build();
    await step('npm ci (tokenizers)', () => installPackages(folder));
    hand(join(folder, 'report.mjs'));
    if (process.argv.length === 3) hand(join(folder, 'calibration.mjs'));
  },

  /** Against other packages, which are installed in bench/peers and a virtual environment. */
  async 'bench:peers'() {
    await setUp();
    await build();
    const peers = join(root, 'bench/peers');
    await step('other packages', () => installPackages(peers));
    await step('other packages, Python', async () => {
      process.env.TIDEMARK_PEERS_PYTHON = await installPython(join(peers, 'requirements.txt'));
    });
    hand(join(peers, 'compare.mjs'));
  },

  async format() {
    await setUp();
    await run('cargo', ['fmt']);
    await run(bin('biome'), ['check', '--write', ...scripts], { cwd: js, show: true });
  },
};

const command = commands[process.argv[2] ?? ''];
if (command === undefined) {
  console.error(`usage: node js/dev.mjs ${Object.keys(commands).join('|')}`);
  process.exit(2);
}
await command();

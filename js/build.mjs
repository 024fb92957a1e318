// Builds pkg/, the npm package: the wasm and its glue, the compiled TypeScript,
// and what pkg-template/ holds. `npm --prefix js run build` sets up the tools first.
import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { chmod, cp, mkdir, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { homedir } from 'node:os';
import { delimiter, join, posix } from 'node:path';
import { fileURLToPath } from 'node:url';

export const root = fileURLToPath(new URL('..', import.meta.url));
export const tools = process.env.TIDEMARK_TOOLS || join(homedir(), '.cache', 'tidemark-tools');
const pkg = join(root, 'pkg');
const target = join(root, 'target', 'wasm');

/**
 * Runs a command and gives back what it printed. Its output is shown as it
 * comes when `show` is set; otherwise only the error of a failure carries it.
 */
export async function run(command, args, { cwd = root, env = process.env, show = false } = {}) {
  const child = spawn(command, args, { cwd, env, stdio: ['ignore', 'pipe', 'pipe'] });
  let output = '';
  for (const [stream, sink] of [
    [child.stdout, process.stdout],
    [child.stderr, process.stderr],
  ]) {
    stream.setEncoding('utf8');
    stream.on('data', (text) => {
      output += text;
      if (show) sink.write(text);
    });
  }
  const code = await new Promise((resolve, reject) => {
    child.on('error', reject);
    child.on('close', (code, signal) => resolve(code ?? signal));
  });
  if (code !== 0) {
    const error = new Error(`${command} ${args.join(' ')}: exit ${code}`);
    throw Object.assign(error, { output, shown: show });
  }
  return output;
}

/** The program of that name in js/node_modules. */
export const bin = (name) => join(root, 'js', 'node_modules', '.bin', name);

/** The environment of a cargo or wasm-pack that compiles for wasm. */
export async function wasmEnv() {
  const env = { ...process.env, CARGO_TARGET_DIR: target };
  const path = (await readFile(join(tools, 'path'), 'utf8')).trim();
  env.PATH = [path, join(root, 'js', 'node_modules', '.bin'), env.PATH].join(delimiter);
  delete env.CARGO_BUILD_TARGET;
  delete env.RUSTFLAGS;
  // Panic messages hold source paths: without these the bytes of the wasm would
  // depend on where the sources lie and on the name that cargo gives its registry.
  // Where several match, rustc takes the last.
  const cargoHome = env.CARGO_HOME || join(homedir(), '.cargo');
  const crates = join(cargoHome, 'registry', 'src');
  const registries = existsSync(crates) ? (await readdir(crates)).sort() : [];
  env.CARGO_ENCODED_RUSTFLAGS = [
    // Optimized for size, a crate calls what is best inlined: with this bound it reads a fifth faster
    // and weighs a twentieth more.
    '-Cllvm-args=-inline-threshold=50',
    `--remap-path-prefix=${cargoHome}=/cargo`,
    ...registries.map((name) => `--remap-path-prefix=${join(crates, name)}=/crates`),
    `--remap-path-prefix=${root.replace(/\/$/, '')}=/tidemark`,
  ].join('\x1f');
  return env;
}

/** Every file under `dir`, as paths relative to it, sorted. */
async function filesUnder(dir) {
  const entries = await readdir(dir, { recursive: true, withFileTypes: true });
  return entries
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath ?? entry.path, entry.name).slice(dir.length + 1))
    .sort();
}

/** A hash of everything that the wasm's bytes depend on. */
async function wasmInputs(env) {
  const hash = createHash('sha256');
  const sources = (await filesUnder(join(root, 'src'))).map((file) => join('src', file));
  const packages = ['binaryen', '@bytecodealliance/jco-transpile'];
  const manifests = packages.map((name) => `js/node_modules/${name}/package.json`);
  for (const file of [...sources, 'Cargo.toml', 'Cargo.lock', 'js/build.mjs', ...manifests]) {
    hash.update(`\0${file}\0`).update(await readFile(join(root, file)));
  }
  hash.update(await run('rustc', ['-vV'], { env }));
  hash.update(await run('wasm-pack', ['--version'], { env }));
  return hash.digest('hex');
}

/** The functions of the standard library in which every panic ends, by their names, mangled or not. */
const panics =
  /(^<?|\d)(alloc|core|std|_*rustc)[[\d].*(panic|_fail(ed)?(_rt)?$|handle_(alloc_)?error$|capacity_overflow$|rust_oom|rust_begin_unwind$)/;

/** What only their messages are written with: a release build formats nothing with `{:?}`. */
const messages =
  /PanicPayload|^<(char|usize|core\S*::ops::range::Range<usize>) as core\S*::fmt::Debug>::fmt$|4core\w*(fmtc|numj|Rangej)\w*5Debug3fmt/;

/**
 * Makes a panic the trap that it ends with, then optimizes for size. Nobody reads what is said
 * before: wasm has no standard error. Its writing would be a fiftieth of the whole.
 */
async function shrink(from, to) {
  const { default: binaryen } = await import('binaryen');
  const wasm = binaryen.readBinary(await readFile(from));
  let found = 0;
  for (let index = 0; index < wasm.getNumFunctions(); index++) {
    const at = wasm.getFunctionByIndex(index);
    const { name, module, body } = binaryen.getFunctionInfo(at);
    const ends = module === '' && binaryen.getExpressionType(body) === binaryen.unreachable;
    if (!(ends && panics.test(name)) && !messages.test(name)) continue;
    binaryen.Function.setBody(at, wasm.unreachable());
    found++;
  }
  if (found === 0) throw new Error('no panic found: have the names changed?');
  await writeFile(to, wasm.emitBinary());
  wasm.dispose();
  // Control flow taken apart and built anew lets the second round find what the first cannot.
  const rounds = ['-Oz', '--flatten', '--rereloop', '-Oz', '-Oz'];
  await run(bin('wasm-opt'), [...rounds, to, '-o', to]);
}

/**
 * Compiles the engine to wasm with its glue, in pkg/wasm. Skipped, except for
 * the copying, when nothing that it depends on has changed: wasm-opt is slow. A debug build keeps the
 * names of functions, and a panic in it has a message.
 */
export async function buildWasm({ debug = false, to = pkg } = {}) {
  const env = await wasmEnv();
  if (debug) env.CARGO_PROFILE_DEV_DEBUG = '0';
  const inputs = await wasmInputs(env);
  const name = debug ? 'pack-debug' : 'pack';
  const built = join(target, name);
  const stamp = join(built, 'inputs');
  const fresh = existsSync(stamp) && (await readFile(stamp, 'utf8')) === inputs;
  if (!fresh) {
    // A folder of its own, so that a build that is stopped leaves no half of one.
    const out = join(target, `${name}-${process.pid}`);
    const options = ['--target', 'web', '--mode', 'no-install', '--no-pack', '--no-gitignore'];
    const names = ['--out-dir', out, '--out-name', 'tidemark'];
    if (debug) options.push('--dev');
    try {
      await run('wasm-pack', ['build', ...options, ...names, '.', '--', '--locked'], { env });
      const wasm = join(out, 'tidemark_bg.wasm');
      if (!debug) await shrink(wasm, wasm);
      await writeFile(join(out, 'inputs'), inputs);
      await rm(built, { recursive: true, force: true });
      await rename(out, built);
    } finally {
      await rm(out, { recursive: true, force: true });
    }
  }

  await mkdir(join(to, 'wasm'), { recursive: true });
  const wasm = await readFile(join(built, 'tidemark_bg.wasm'));
  for (const file of ['tidemark.js', 'tidemark.d.ts', 'tidemark_bg.wasm']) {
    await cp(join(built, file), join(to, 'wasm', file));
  }
  // The module as text: a runtime then needs no fetch, no file access and no
  // top-level await to start it, and a bundler no plugin to find it.
  await writeFile(
    join(to, 'wasm', 'inline.js'),
    `// The bytes of tidemark_bg.wasm in base64.\nexport default '${wasm.toString('base64')}';\n`,
  );
  await writeFile(
    join(to, 'wasm', 'inline.d.ts'),
    '/** The bytes of tidemark_bg.wasm in base64. */\ndeclare const base64: string;\nexport default base64;\n',
  );
  await writeFile(
    join(to, 'wasm', 'index.d.ts'),
    '/** The WebAssembly.Module that a bundler or an edge runtime makes of the file. */\ndeclare const module: object;\nexport default module;\n',
  );
  return fresh ? 'unchanged' : `${wasm.length} bytes`;
}

/**
 * Compiles the engine to a component of the Component Model, pkg/component/tidemark.wasm, with its
 * world beside it. Skipped like the other.
 */
export async function buildComponent() {
  const env = await wasmEnv();
  const inputs = await wasmInputs(env);
  const built = join(target, 'component.wasm');
  const stamp = join(target, 'component.inputs');
  const fresh = existsSync(stamp) && (await readFile(stamp, 'utf8')) === inputs;
  if (!fresh) {
    await rm(stamp, { force: true });
    const options = ['--locked', '--release', '--target', 'wasm32-unknown-unknown', '--lib'];
    const features = ['--no-default-features', '--features', 'component'];
    await run('cargo', ['build', ...options, ...features], { env });
    const core = join(target, 'wasm32-unknown-unknown/release/tidemark.wasm');
    const small = join(target, 'component.core.wasm');
    await shrink(core, small);
    const { componentNew } = await import('@bytecodealliance/jco-transpile/wasm-tools');
    await writeFile(built, await componentNew(await readFile(small), []));
    await writeFile(stamp, inputs);
  }
  await mkdir(join(pkg, 'component'), { recursive: true });
  await cp(built, join(pkg, 'component/tidemark.wasm'));
  await cp(join(root, 'src/tidemark.wit'), join(pkg, 'component/tidemark.wit'));
  return fresh ? 'unchanged' : `${(await readFile(built)).length} bytes`;
}

/** Compiles the TypeScript into pkg/ and completes the package around it. */
export async function buildPackage() {
  const template = join(root, 'pkg-template');
  const manifest = JSON.parse(await readFile(join(template, 'package.json'), 'utf8'));
  const cargo = await readFile(join(root, 'Cargo.toml'), 'utf8');
  const version = /^\[package\][^[]*?^version = "([^"]+)"/m.exec(cargo)?.[1];
  if (manifest.version !== version) {
    throw new Error(
      `Cargo.toml has version ${version}, pkg-template/package.json ${manifest.version}`,
    );
  }

  const copied = await filesUnder(template);
  await cp(template, pkg, { recursive: true });
  await cp(join(root, 'LICENSE'), join(pkg, 'LICENSE'));
  // After the manifest is there: it makes ./wasm/* ES modules to the compiler.
  await run(bin('tsc'), ['-p', 'js/tsconfig.json']);

  const commandLine = await buildCommandLine();
  const compiled = (await filesUnder(join(root, 'js')))
    .filter((file) => file.endsWith('.ts') && !file.endsWith('.d.ts'))
    .filter((file) => !/^(node_modules|cli)\//.test(file))
    .flatMap((file) => [file.replace(/ts$/, 'js'), file.replace(/ts$/, 'd.ts')]);
  const glue = ['tidemark.js', 'tidemark.d.ts', 'inline.js', 'inline.d.ts', 'index.d.ts'];
  const modules = [...compiled, ...glue.map((file) => join('wasm', file))];
  // Nothing that is there to be loaded has a place in declarations.
  for (const entry of ['replay/index.d.ts', 'worker/engine.d.ts']) {
    const text = await readFile(join(pkg, entry), 'utf8');
    await writeFile(join(pkg, entry), text.replace("import '#start';", 'export {};'));
  }
  const common = await buildCommon(modules);

  // What an earlier build left there goes.
  const expected = new Set([
    ...modules,
    ...common,
    ...commandLine,
    ...copied,
    join('wasm', 'tidemark_bg.wasm'),
    join('component', 'tidemark.wasm'),
    join('component', 'tidemark.wit'),
    'LICENSE',
  ]);
  for (const file of await filesUnder(pkg)) {
    if (!expected.has(file)) await rm(join(pkg, file));
  }
  return `${expected.size} files in pkg/`;
}

/**
 * Bundles the command line with the packages that it uses, whose licences go with it; it imports the
 * rest of the package.
 */
async function buildCommandLine() {
  const { build } = await import('esbuild');
  const cli = join(root, 'js', 'cli');
  const shared = {
    absWorkingDir: join(root, 'js'),
    bundle: true,
    mainFields: ['module', 'main'],
    minifySyntax: true,
    minifyWhitespace: true,
    target: 'node20',
    legalComments: 'none',
    metafile: true,
    write: false,
    logLevel: 'silent',
  };
  // What stands outside js/cli is in the package already.
  const outside = {
    name: 'outside',
    setup({ onResolve }) {
      onResolve({ filter: /^\.\.\// }, ({ path, importer }) =>
        importer.startsWith(join(cli, '/')) ? { path, external: true } : undefined,
      );
    },
  };
  const program = await build({
    ...shared,
    entryPoints: [join(cli, 'main.ts')],
    format: 'esm',
    platform: 'node',
    plugins: [outside],
    // Packages written for CommonJS ask for Node's modules with require.
    banner: {
      js: "#!/usr/bin/env node\nimport { createRequire as nodeRequire } from 'node:module';\nconst require = nodeRequire(import.meta.url);",
    },
  });
  const page = await build({ ...shared, entryPoints: [join(cli, 'page.ts')], format: 'iife' });
  const parts = {
    style: await readFile(join(root, 'js/node_modules/uplot/dist/uPlot.min.css'), 'utf8'),
    // What ends a script must not stand in it.
    script: page.outputFiles[0].text.replaceAll('</script', '<\\/script'),
  };
  const template = await readFile(join(cli, 'report.html'), 'utf8');
  const inputs = [program, page].flatMap(({ metafile }) => Object.keys(metafile.inputs));
  const written = {
    'cli/report.html': template.replace(/\{\{(style|script)\}\}/g, (_, name) => parts[name].trim()),
    'cli/main.js': program.outputFiles[0].text,
    'cli/LICENSES.txt': await licenses(inputs),
  };
  await mkdir(join(pkg, 'cli'), { recursive: true });
  for (const [file, text] of Object.entries(written)) await writeFile(join(pkg, file), text);
  await chmod(join(pkg, 'cli/main.js'), 0o755);
  return Object.keys(written);
}

/** The licences of the packages that these files are from. */
async function licenses(inputs) {
  const folders = new Set();
  for (const input of inputs) {
    const [folder] = /^.*node_modules\/(@[^/]+\/)?[^/]+/.exec(input) ?? [];
    if (folder !== undefined) folders.add(folder);
  }
  const texts = ['The command line contains these packages.\n'];
  for (const folder of [...folders].sort()) {
    const at = join(root, 'js', folder);
    const { name, version, license } = JSON.parse(await readFile(join(at, 'package.json'), 'utf8'));
    const file = (await readdir(at)).find((entry) => /^licen[cs]e/i.test(entry));
    const text = file === undefined ? '' : `\n${await readFile(join(at, file), 'utf8')}`;
    texts.push(`## ${name} ${version} (${license})\n${text}`);
  }
  return `${texts.join('\n').trimEnd()}\n`;
}

/**
 * The modules once more as CommonJS, for Node before 20.19, which cannot `require` an ES module,
 * and for tools that go by the condition. The declarations are the same: what they mean follows
 * from the `type` of the package.json beside them.
 */
async function buildCommon(modules) {
  const { transform } = await import('esbuild');
  const written = [];
  for (const file of modules) {
    // An edge runtime has no require.
    if (/(workerd|edge-light)\.(js|d\.ts)$/.test(file)) continue;
    const text = await readFile(join(pkg, file), 'utf8');
    const out = join('cjs', file);
    await mkdir(join(pkg, out, '..'), { recursive: true });
    const options = { format: 'cjs', target: 'es2022' };
    const code = file.endsWith('.js') ? (await transform(text, options)).code : text;
    // The names of the root manifest are not those of this folder.
    const inline = posix.relative(posix.dirname(file), 'start/inline.js').replace(/^s/, './s');
    await writeFile(join(pkg, out), code.replace('require("#start")', `require("${inline}")`));
    written.push(out);
  }
  await writeFile(join(pkg, 'cjs', 'package.json'), '{ "type": "commonjs" }\n');
  return [...written, join('cjs', 'package.json')];
}

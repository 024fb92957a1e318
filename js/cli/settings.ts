// Settings: those of the project file, the environment and the command line, the later before the
// earlier.
import { existsSync, readFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { Session, type SessionOptions } from '../index.js';
import { EXIT, Failure, reason } from './failure.js';
import { writeWhole } from './output.js';

/** The project file: in the working directory, or in the nearest folder above it that has one. */
export const FILE_NAME = 'tidemark.json';

export type SettingName = keyof typeof SETTINGS;

/** Every setting: what it is, how a text becomes its value, and whether the engine takes it. */
export const SETTINGS = {
  window: { about: 'context window of the model, tokens: 200k', read: tokens, engine: true },
  reserve: { about: 'kept free for the output, tokens', read: tokens, engine: true },
  compactAt: {
    about: 'where a burst starts: share of usable, or tokens',
    read: size,
    engine: true,
  },
  compactTo: { about: 'where a burst may stop, likewise', read: size, engine: true },
  tail: { about: 'newest part that stays: share of usable, or tokens', read: size, engine: true },
  preset: { about: 'a name for a set of stages', read: text, engine: true },
  model: { about: 'model id', read: text, engine: true },
  tokenizer: { about: 'family of tokenizers to count like', read: text, engine: true },
  format: { about: 'wire format of the messages', read: text, engine: true },
  namespace: { about: 'name of a conversation in the store', read: text, engine: true },
  summarizer: { about: 'local, openai:MODEL or anthropic:MODEL', read: text, engine: false },
  baseUrl: { about: 'where the summarizer is reached', read: text, engine: false },
  store: { about: 'folder that keeps what leaves the view', read: text, engine: false },
  prices: { about: 'openai, anthropic, or a price table', read: text, engine: false },
} as const;

export interface Settings {
  window?: number;
  reserve?: number;
  compactAt?: number;
  compactTo?: number;
  tail?: number;
  preset?: string;
  model?: string;
  tokenizer?: string;
  format?: string;
  namespace?: string;
  summarizer?: string;
  baseUrl?: string;
  store?: string;
  prices?: string;
}

/** Those that the engine takes. */
export type EngineSettings = Omit<
  SessionOptions<object>,
  'store' | 'summarizer' | 'beforeBurst' | 'flush' | 'pin'
>;

/** Where a value is from. */
export type Origin = 'file' | 'environment' | 'flag';

/** The settings in force. */
export interface Config {
  values: Settings;
  origins: Partial<Record<SettingName, Origin>>;
  /** The project file, where there is one. */
  file: string | undefined;
}

/** @param flags what the command line says, as text */
export function configure(flags: Record<string, unknown>): Config {
  const file = projectFile();
  const config: Config = { values: {}, origins: {}, file };
  const set = (name: SettingName, value: unknown, origin: Origin, place: string) => {
    Object.assign(config.values, { [name]: parseSetting(name, value, place) });
    config.origins[name] = origin;
  };
  for (const [name, value] of Object.entries(file ? readProject(file) : {})) {
    if (!isSetting(name)) throw new Failure(EXIT.usage, `${file}: ${name}: unknown`, knownNames());
    set(name, fromFile(name, value, file ?? ''), 'file', `${file}: ${name}`);
  }
  for (const name of NAMES) {
    const variable = variableOf(name);
    const value = process.env[variable];
    if (value !== undefined && value !== '') set(name, value, 'environment', variable);
  }
  for (const name of NAMES) {
    const value = flags[name];
    if (value !== undefined) set(name, value, 'flag', `--${dashed(name)}`);
  }
  return config;
}

/** Paths in a project file start at its folder; where keys are sent is not for a file to say. */
function fromFile(name: SettingName, value: unknown, file: string): unknown {
  if (name === 'baseUrl') throw new Failure(EXIT.usage, `${file}: ${NOT_FROM_FILE}`);
  const path =
    name === 'store' || (name === 'prices' && value !== 'openai' && value !== 'anthropic');
  return path && typeof value === 'string' && value !== '' ? resolve(dirname(file), value) : value;
}

const NOT_FROM_FILE =
  'baseUrl: a file that came with a project could have your key sent anywhere: use TIDEMARK_BASE_URL or --base-url';

export const NAMES = Object.keys(SETTINGS) as SettingName[];

export const isSetting = (name: string): name is SettingName => Object.hasOwn(SETTINGS, name);

export const knownNames = () => `known are ${NAMES.join(', ')}`;

/** Names that a setting may have, for completion and help. */
export const CHOICES = {
  format: ['auto', 'openai-chat', 'openai-responses', 'anthropic', 'gemini', 'ai-sdk'],
  tokenizer: ['o200k', 'cl100k', 'claude', 'llama3', 'gemini', 'bytes'],
  preset: [
    'default',
    'two-tier',
    'late',
    'truncate',
    'sliding',
    'prune',
    'smart',
    'summarize',
    'llm-summarize',
    'conversation',
  ],
};

/** compactAt as TIDEMARK_COMPACT_AT. */
export const variableOf = (name: string) =>
  `TIDEMARK_${name.replace(/[A-Z]/g, '_$&').toUpperCase()}`;

/** compactAt as compact-at. */
export const dashed = (name: string) => name.replace(/[A-Z]/g, '-$&').toLowerCase();

/** A value as a file or a text has it. */
export function parseSetting(name: SettingName, value: unknown, place: string): unknown {
  const { read } = SETTINGS[name];
  const parsed = read(typeof value === 'number' ? String(value) : value);
  if (parsed === undefined) {
    const shown = JSON.stringify(value);
    throw new Failure(EXIT.usage, `${place}: ${shown} is none: ${SETTINGS[name].about}`);
  }
  return parsed;
}

/** The options of a session, checked by the engine itself. */
export function engineOptions({ values, origins }: Config): EngineSettings {
  const entries = NAMES.filter((name) => SETTINGS[name].engine && values[name] !== undefined);
  const options = Object.fromEntries(entries.map((name) => [name, values[name]]));
  try {
    new Session(options).dispose();
  } catch (error) {
    const named = entries.find((name) => reason(error).includes(`options.${name}`));
    const origin = named && origins[named];
    const place = { file: FILE_NAME, environment: named && variableOf(named), flag: undefined };
    const from = (origin && place[origin]) ?? (named ? `--${dashed(named)}` : 'settings');
    throw new Failure(EXIT.usage, `${from}: ${reason(error).replace(/^options\.\w+: /, '')}`);
  }
  return options as EngineSettings;
}

/** The window, which some commands cannot do without. */
export function requireWindow({ values }: Config): number {
  if (values.window !== undefined) return values.window;
  const hint = 'for example -w 200k, TIDEMARK_WINDOW=200k, or tidemark config set window 200k';
  throw new Failure(EXIT.usage, 'the context window is not known: give -w', hint);
}

/** The nearest project file, from the working directory upwards. */
function projectFile(): string | undefined {
  for (let folder = resolve('.'); ; folder = dirname(folder)) {
    const file = join(folder, FILE_NAME);
    if (existsSync(file)) return file;
    if (dirname(folder) === folder) return undefined;
  }
}

function readProject(file: string): Record<string, unknown> {
  let value: unknown;
  try {
    value = JSON.parse(readFileSync(file, 'utf8'));
  } catch (error) {
    throw new Failure(EXIT.usage, `${file}: ${reason(error)}`);
  }
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) {
    return value as Record<string, unknown>;
  }
  throw new Failure(EXIT.usage, `${file}: expected an object such as { "window": 200000 }`);
}

/** Sets a value in the project file, or removes it; returns the file. */
export async function writeSetting(name: SettingName, value: unknown): Promise<string> {
  if (name === 'baseUrl' && value !== undefined) throw new Failure(EXIT.usage, NOT_FROM_FILE);
  const file = projectFile() ?? resolve(FILE_NAME);
  const project = existsSync(file) ? readProject(file) : {};
  if (value === undefined) delete project[name];
  else project[name] = value;
  await writeWhole(file, `${JSON.stringify(project, null, 2)}\n`);
  return file;
}

/** 200k as 200000, 1m as 1000000. */
export function tokens(source: unknown): number | undefined {
  const [, digits, unit = ''] = /^([\d_.,]+)\s*([km]?)$/i.exec(String(source).trim()) ?? [];
  const number =
    Number(digits?.replace(/[_,]/g, '')) * ({ k: 1e3, m: 1e6 }[unit.toLowerCase()] ?? 1);
  return Number.isFinite(number) && number >= 1 ? Math.round(number) : undefined;
}

/** A share such as 0.85 or 85%, or tokens. */
function size(source: unknown): number | undefined {
  const trimmed = String(source).trim();
  const share = trimmed.endsWith('%') ? Number(trimmed.slice(0, -1)) / 100 : Number(trimmed);
  return share > 0 && share <= 1 ? share : tokens(trimmed);
}

function text(source: unknown): string | undefined {
  return typeof source === 'string' && source !== '' ? source : undefined;
}

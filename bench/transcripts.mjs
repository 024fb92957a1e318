// The transcripts that benchmarks and reports replay.
import { readdirSync, readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { gunzipSync } from 'node:zlib';

/** The JSON files of a folder, gzipped or not. */
export function transcriptsIn(folder) {
  return readdirSync(folder)
    .filter((file) => /\.json(\.gz)?$/.test(file))
    .map((file) => {
      const bytes = readFileSync(join(folder, file));
      const text = file.endsWith('.gz') ? gunzipSync(bytes) : bytes;
      return { name: basename(file).replace(/\.json(\.gz)?$/, ''), messages: JSON.parse(text) };
    });
}

/** The recorded sessions of the repository, in the messages of OpenAI Chat. */
export function recorded() {
  const folders = ['peers/sessions', '../tests/data'];
  return folders.flatMap((folder) =>
    transcriptsIn(fileURLToPath(new URL(folder, import.meta.url))),
  );
}

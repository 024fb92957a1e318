// The weight of the package, and its limits. Run by `npm --prefix js test`.
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { brotliCompressSync, gzipSync } from 'node:zlib';
import { root } from './build.mjs';

/**
 * Bytes of pkg/wasm/tidemark_bg.wasm, as it is and as a server would send it: what it has today and
 * little more. The aim is 250,000 and 100,000.
 */
const limits = { raw: 492_000, gzip: 229_000 };

/** One line with the sizes; throws when the wasm is over a limit. */
export async function checkSize() {
  const wasm = await readFile(join(root, 'pkg/wasm/tidemark_bg.wasm'));
  const gzip = gzipSync(wasm, { level: 9 }).length;
  const brotli = brotliCompressSync(wasm).length;
  const sizes = `wasm ${wasm.length} bytes of ${limits.raw}, gzip ${gzip} of ${limits.gzip}, brotli ${brotli}`;
  if (wasm.length > limits.raw || gzip > limits.gzip) throw new Error(`too large: ${sizes}`);
  return sizes;
}

if (import.meta.url === pathToFileURL(process.argv[1]).href) console.log(await checkSize());

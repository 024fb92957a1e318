// Real Chromium, driven by playwright-core, over pages that a server on loopback serves.
import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { extname, join, normalize } from 'node:path';
import { chromium } from 'playwright-core';

const types = {
  '.css': 'text/css',
  '.html': 'text/html',
  '.js': 'text/javascript',
  '.json': 'application/json',
  '.mjs': 'text/javascript',
  '.wasm': 'application/wasm',
};

/** Serves a folder on loopback; `headers` go with every answer. */
export async function serve(folder, headers = {}) {
  const server = createServer(async (request, response) => {
    const path = normalize(decodeURIComponent(new URL(request.url, 'http://x').pathname));
    try {
      const body = await readFile(join(folder, path));
      const type = types[extname(path)] ?? 'application/octet-stream';
      response.writeHead(200, { 'content-type': type, ...headers }).end(body);
    } catch {
      response.writeHead(404).end();
    }
  });
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${server.address().port}`,
    close: () => new Promise((resolve) => server.close(resolve)),
  };
}

/** The browser: `CHROMIUM` names another one than Debian's. */
export async function launch(args = []) {
  const executablePath = process.env.CHROMIUM ?? '/usr/bin/chromium';
  if (!existsSync(executablePath)) {
    throw new Error(`${executablePath} is missing: bash js/setup.sh runtimes installs it`);
  }
  // As root there is no sandbox, and /dev/shm is small in containers.
  return chromium.launch({
    executablePath,
    args: ['--no-sandbox', '--disable-dev-shm-usage', '--disable-gpu', ...args],
  });
}

/**
 * Opens a page that leaves its answer in `globalThis.answer`, and gives that back; an error of the
 * page is thrown.
 */
export async function answerOf(browser, url, timeout = 120_000) {
  const page = await browser.newPage();
  const errors = [];
  page.on('pageerror', (error) => errors.push(error.message));
  page.on('console', (message) => message.type() === 'error' && errors.push(message.text()));
  try {
    await page.goto(url);
    const end = Date.now() + timeout;
    // Not waitForFunction: it would compile its predicate in the page, which a policy may forbid.
    for (;;) {
      const answer = await page.evaluate(() => globalThis.answer);
      if (answer !== undefined) return answer;
      if (Date.now() > end) throw new Error('no answer');
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  } catch (error) {
    throw new Error(`${url}: ${error.message}\n${errors.join('\n')}`);
  } finally {
    await page.close();
  }
}

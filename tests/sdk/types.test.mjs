// The integration as strict TypeScript users see it, with each version of the package `ai`.
import { execFileSync } from 'node:child_process';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';

test('prepareStep, middleware and recallTools have types that versions 5 to 7 take', () => {
  const tsc = fileURLToPath(new URL('../../js/node_modules/.bin/tsc', import.meta.url));
  const project = fileURLToPath(new URL('tsconfig.json', import.meta.url));
  try {
    execFileSync(tsc, ['-p', project], { encoding: 'utf8', stdio: 'pipe' });
  } catch (error) {
    throw new Error(error.stdout);
  }
});

// The engine from a module compiled at deployment: Vercel's edge runtime wants the query.
import { provide } from '../load.js';
import module from '../wasm/tidemark_bg.wasm?module';

provide(() => module);

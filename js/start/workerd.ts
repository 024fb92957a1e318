// The engine from a module compiled at deployment: Cloudflare Workers may not compile at run time.
import { provide } from '../load.js';
import module from '../wasm/tidemark_bg.wasm';

provide(() => module);

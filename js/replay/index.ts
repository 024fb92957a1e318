/**
 * Measures policies that keep conversations inside a window, on recorded sessions: what every call
 * would have cost with the provider's prompt cache, whether views are valid, and whether they still
 * show what the session goes on to use. Nothing here sends anything anywhere.
 */
import '#start';

export { identifiers, mentions } from './identifiers.js';
export { compactor, whole } from './policies.js';
export {
  ANTHROPIC_PRICES,
  type CachePrices,
  type CacheRule,
  type Charge,
  OPENAI_PRICES,
  PrefixCache,
  type Segment,
} from './prices.js';
export {
  type CallReport,
  callsOf,
  type Policy,
  type PolicyView,
  type ReplayOptions,
  type ReplayReport,
  replay,
  type Turn,
} from './replay.js';
export type { Retention } from './retention.js';
export { refusal } from './validity.js';

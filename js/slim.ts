/**
 * tidemark keeps an LLM conversation inside its context window. `Compactor` does the whole job;
 * `Session` with `plan` and `render` is for hosts that drive the loop themselves.
 */

export {
  Compactor,
  type CompactorEvent,
  type CompactorOptions,
  type CompactRequest,
  type CompactResult,
  type UsageReport,
} from './compactor.js';
export type { BeforeBurst, BurstAnswer, Flush, SummarizeRequest, Summarizer } from './driver.js';
export { InternalError, TidemarkError, type TidemarkErrorCode } from './errors.js';
export { init } from './load.js';
export {
  classifyError,
  estimate,
  plan,
  render,
  resolve,
  Session,
  type SessionOptions,
  validate,
} from './session.js';
export type * from './types.js';

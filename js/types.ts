// What goes in and out of tidemark. Sizes are tokens unless said otherwise; tokens are
// estimates, corrected by the usage that the provider reports.

/** A message of OpenAI Chat Completions, as far as tidemark looks at it. */
export interface ChatMessage {
  role: string;
  content?: unknown;
}

/** Wire formats: how a provider or an SDK writes a conversation. */
export type FormatName = 'openai-chat' | 'openai-responses' | 'anthropic' | 'gemini' | 'ai-sdk';

/** Families of tokenizers. */
export type TokenizerName = 'o200k' | 'cl100k' | 'claude' | 'llama3' | 'gemini' | 'bytes';

/** Names of the stages of a burst. */
export type StageName =
  | 'dedupe'
  | 'offload'
  | 'clear'
  | 'reasoning'
  | 'media'
  | 'smart'
  | 'summarize'
  | 'drop'
  | 'elide';

/** Names of the presets. */
export type PresetName =
  | 'default'
  | 'two-tier'
  | 'late'
  | 'truncate'
  | 'sliding'
  | 'prune'
  | 'smart'
  | 'summarize'
  | 'llm-summarize'
  | 'conversation';

/** A stage with its options. */
export interface StageOptions {
  stage: StageName;
  /**
   * The newest results that stay as they are, of those that `include` and `exclude` let the stage
   * have; media: the newest images and files.
   * @default 2 for offload, 3 for clear, 1 for media
   */
  keepLast?: number | undefined;
  /** Results under this many tokens stay. @default 1000 for offload, 50 for clear and dedupe */
  minTokens?: number | undefined;
  /** offload: tokens of the preview that stays. @default 200 */
  previewTokens?: number | undefined;
  /**
   * dedupe, offload, clear: the newest results stay that take this many tokens together, beside
   * those that `keepLast` spares. @default 0
   */
  protectTokens?: number | undefined;
  /**
   * dedupe, offload, clear, reasoning, media: a stage that could take out less than this takes out
   * nothing, since each change costs the prompt cache. A share of usable in (0, 1], or tokens from
   * 2 up. @default 0
   */
  clearAtLeast?: number | undefined;
  /** The same as a share of the view in [0, 1). @default 0; `summary.minSavings` for summarize */
  minSavings?: number | undefined;
  /** dedupe, offload, clear: the only tools whose results may leave. @default all */
  include?: string[] | undefined;
  /** dedupe, offload, clear: tools whose results stay. */
  exclude?: string[] | undefined;
  /** dedupe, offload, clear: results that tell of a failure stay. @default false */
  keepErrors?: boolean | undefined;
  /**
   * offload, clear: arguments of old calls leave as results do: of all tools, or of these.
   * @default false
   */
  includeArguments?: boolean | string[] | undefined;
  /**
   * Size of the view from which the stage runs: a share of usable in (0, 1], or tokens from 2 up.
   * @default `compactAt`; 1 for drop and elide, the last resorts
   */
  at?: number | undefined;
}

/**
 * A stage of your own. It decides at once, on what it is shown: `plan` must not return a promise.
 * Where it throws, its decisions are let go, the error stands in `failures`, and the burst goes on.
 */
export interface CustomStage<M = ChatMessage> {
  /** What outcomes call it. */
  name: string;
  plan(context: StageContext<M>): void;
  /**
   * Size of the view from which it runs: a share of usable in (0, 1], or tokens from 2 up.
   * @default `compactAt`
   */
  at?: number | undefined;
}

/**
 * What a stage of your own sees, and what it may do. Each decision is checked when it is made:
 * units stay whole, what is pinned or protected stays, and nothing is undone.
 */
export interface StageContext<M = ChatMessage> {
  /** Its name. */
  readonly stage: string;
  /** Size of the view, with what the stage has decided so far taken off. */
  readonly tokens: number;
  /** Size at which the stage may stop. */
  readonly target: number;
  /** Size that the view must not exceed. */
  readonly limit: number;
  /** The provider refused the view. */
  readonly overflow: boolean;
  /** The burst was asked for with `force`. */
  readonly forced: boolean;
  /** The transcript; empty where raw bodies are compacted. */
  readonly messages: readonly M[];
  /** Parts in the view, oldest first. */
  readonly parts: readonly StagePart[];
  /** Units in the view, oldest first. */
  readonly units: readonly StageUnit[];
  /**
   * The part becomes a marker; reasoning leaves without one. Returns the tokens saved.
   * @throws {TidemarkError} `invalid_decision`, naming the message
   */
  clear(part: { index: number; part: number }): number;
  /**
   * The part becomes its head and tail, 200 tokens of it; the whole goes to the store, if there is
   * one. Returns the tokens saved.
   * @throws {TidemarkError} `invalid_decision`, naming the message
   */
  offload(part: { index: number; part: number }, tokens?: number): number;
  /**
   * Whole units leave: the messages from `from` to the one before `to`. Returns the tokens saved.
   * @throws {TidemarkError} `invalid_decision`, naming the message
   */
  drop(run: { from: number; to: number }): number;
  /**
   * All units before this message are folded into the summary. Returns the tokens that they take;
   * the summary takes some of them itself.
   * @throws {TidemarkError} `invalid_decision`, naming the message
   */
  summarize(to: number): number;
}

/** A part in the view, as a stage of your own sees it. */
export interface StagePart {
  /** Message. */
  index: number;
  /** Part of it. */
  part: number;
  kind: PartKind;
  role: 'system' | 'user' | 'assistant' | 'tool' | 'other';
  /** Tool of a call or of its result. */
  tool?: string;
  /** Tokens that it takes in the view now. */
  tokens: number;
  /** What was decided on it before. */
  decision?: Decision['kind'];
  pinned: boolean;
  /** It is in the protected tail, which stays as well. */
  protected: boolean;
  /** A result that tells of a failure. */
  failed: boolean;
}

/** A unit in the view: what leaves together. */
export interface StageUnit {
  /** First message. */
  from: number;
  /** The message after the last. */
  to: number;
  /** Tokens that it takes in the view now. */
  tokens: number;
  pinned: boolean;
  /** It is in the protected tail, which stays as well. */
  protected: boolean;
}

/** @internal A stage of the caller's own runs. Sessions answer it themselves. */
export interface DecideEffect {
  kind: 'decide';
  id: number;
  /** Place in the list of stages. */
  position: number;
  context: Omit<StageContext<never>, 'messages' | 'clear' | 'offload' | 'drop' | 'summarize'>;
}

/** Options of a session. */
export interface EngineOptions {
  /** Wire format of the messages. @default 'auto': told from the messages themselves */
  format?: FormatName | 'auto' | undefined;
  /**
   * Context window of the model: prompt and output together. Without it nothing is compacted,
   * and a notice says so, until a provider's overflow error has named the window.
   */
  window?: number | undefined;
  /**
   * Kept free for the output; more than window / 2 counts as window / 2.
   * @default min(16384, window / 4)
   */
  reserve?: number | undefined;
  /**
   * Where a burst starts: a share of usable (window minus reserve) in (0, 1], or tokens from 101
   * up. For 85 % write 0.85.
   * @default that of the preset: 0.55 with `default`, 0.85 where it names none
   */
  compactAt?: number | undefined;
  /**
   * Where a burst may stop, as `compactAt`; must be lower.
   * @default that of the preset: 0.2 with `default`; else 0.6, or 0.7 of a `compactAt` of 0.6 or less
   */
  compactTo?: number | undefined;
  /**
   * Size of the protected tail: a share of usable in (0, 1], or tokens from 2 up.
   * @default that of the preset: 0.1 with `default`, 0.2 where it names none
   */
  tail?: number | undefined;
  /**
   * Options under a name, which the others here win over.
   * - `default`: all stages but smart, in the order of `StageName`; early and deep, from 55 % to
   *   20 % with a tail of 10 %, and only where half of the view can go
   * - `late`: the same from 85 % to 60 % with a tail of 20 %: more stays verbatim, and every call
   *   costs more
   * - `two-tier`: results but the newest six become markers at 50 %, a summary at 80 %
   * - `truncate`: the oldest messages leave, down to 40 %
   * - `sliding`: the oldest messages leave, from 95 % to 80 %: as much as fits
   * - `prune`: results of tools become head and tail, then markers; messages stay
   * - `smart`: the units that say the least for their size leave, wherever they stand
   * - `summarize`: the oldest messages are folded by the local summarizer, without any model
   * - `llm-summarize`: the same by your summarizer
   * - `conversation`: for people who talk: results first, then a summary by the template of
   *   that name; a tail of 30 %
   * @default 'default'
   */
  preset?: PresetName | undefined;
  /** The stages, cheapest first. @default those of the preset */
  stages?: (StageName | StageOptions)[] | undefined;
  /**
   * Least share of the view, in [0, 1), that a burst must be able to free for it to begin; a view at
   * 85 % of usable begins one all the same. @default 0.5 with the preset
   * `default`, else 0
   */
  minBurst?: number | undefined;
  /** Model id: calibration and learned windows are kept per model. */
  model?: string | undefined;
  /** Endpoint of the model: learned windows are kept per endpoint and model. */
  endpoint?: string | undefined;
  /**
   * Session secret, 32 hexadecimal digits. It names store keys and makes the fences of prompts
   * unguessable. @default drawn at random, and kept in the checkpoint
   */
  secret?: string | undefined;
  /**
   * Name under which sessions share a store: up to 64 letters, digits, `.`, `_` or `-`, not starting
   * with `.`. @default from the secret
   */
  namespace?: string | undefined;
  /**
   * Family of tokenizers that text is counted like; `bytes` counts a token for each byte.
   * @default told from `model`, else 'o200k'
   */
  tokenizer?: TokenizerName | undefined;
  /** Tokens of an image of unknown size. @default 1600 */
  imageTokens?: number | undefined;
  /** Tokens of a file of unknown size. @default 2250 */
  fileTokens?: number | undefined;
  /** Tokens of audio of unknown length. @default 1920 */
  audioTokens?: number | undefined;
  /** Most bytes of a request's messages, as JSON. @default no limit */
  maxBytes?: number | undefined;
  /** Most images and files of a request; the oldest become markers. @default no limit */
  maxImages?: number | undefined;
  /**
   * Keep signed reasoning of older turns although what stands before it was rewritten.
   * @default false: it leaves the view with the rewrite, since its signature covers that
   */
  keepReasoning?: boolean | undefined;
  /**
   * Merge the summary into the user message that follows, for chat templates that refuse two
   * messages of one role in a row. @default false
   */
  alternate?: boolean | undefined;
  /**
   * End the summary in the view with a cache marker: `cache_control` for Anthropic, its option among
   * `providerOptions` for the AI SDK; other formats have none. It is one of the four that a request
   * may carry. @default false
   */
  cacheMarker?: boolean | undefined;
  /** The host answers `put` effects; `Compactor` sets it by its store. */
  store?: boolean | undefined;
  /** The host answers `summarize` effects; `Compactor` sets it by its summarizer. */
  summarizer?: boolean | undefined;
  /** The host answers `burst` effects; `Compactor` sets it by its hook. */
  beforeBurst?: boolean | undefined;
  /** The host answers `flush` effects; `Compactor` sets it by its hook. */
  flush?: boolean | undefined;
  /** Shape and limits of summaries. */
  summary?: SummaryOptions | undefined;
  /** The recall tool, or false to do without. */
  recall?: RecallOptions | boolean | undefined;
}

/** Shape and limits of summaries. */
export interface SummaryOptions {
  /**
   * Sections of a summary.
   * - `task`: session intent, current state, key facts and decisions, artifacts, constraints, next steps
   * - `handoff`: active task, completed, in progress, pending questions, files, remaining
   * - `conversation`: topic, goals, decisions, facts, action items, preferences
   * @default 'task'
   */
  template?: 'task' | 'handoff' | 'conversation' | undefined;
  /** Sections of your own, in place of a template's: names, or what belongs into each besides. */
  sections?: (string | SummarySection)[] | undefined;
  /** What summaries give the most room to, where the call of `compact` does not say. */
  focus?: string | undefined;
  /** What stands before the summary in the view. @default that it is reference, not an instruction */
  prefix?: string | undefined;
  /**
   * Every summary starts over from the first message, without the previous one, as long as
   * `maxCalls` suffice. @default false: each goes on from the one before
   */
  fresh?: boolean | undefined;
  /**
   * `append`: prompts go behind the view up to the end of the span (`messages` of the request), so
   * that the provider's prompt cache serves them. What is too large for that, starts over, or is a
   * raw body has a prompt that stands alone. @default 'standalone'
   */
  request?: 'standalone' | 'append' | undefined;
  /** Cap of a summary. @default min(4096, usable / 8), at least 64 */
  maxTokens?: number | undefined;
  /** Context window of the summarizer, 1000 at least. @default the session's */
  window?: number | undefined;
  /** Most summarizer calls in one burst; then the local summarizer takes over. @default 8 */
  maxCalls?: number | undefined;
  /** Failures in a row after which the summarizer rests for some turns. @default 3 */
  maxFailures?: number | undefined;
  /** Least share of the view that a fold must free. @default 0.1 */
  minSavings?: number | undefined;
}

/** A section of a summary. */
export interface SummarySection {
  /** Its heading. */
  name: string;
  /** What belongs into it, for the summarizer. */
  about?: string | undefined;
  /** What the local summarizer files there. @default told from the name */
  holds?: SummaryTopic[] | undefined;
}

/** What the local summarizer finds; what no section holds goes to one that is near. */
export type SummaryTopic =
  | 'intent'
  | 'requests'
  | 'state'
  | 'questions'
  | 'done'
  | 'decisions'
  | 'facts'
  | 'artifacts'
  | 'constraints'
  | 'next';

/** One piece of the messages that are being summarized. */
export interface SummaryPiece {
  /** Message of the transcript. */
  index: number;
  kind: 'system' | 'user' | 'assistant' | 'call' | 'result' | 'media';
  /** Tool of a call, or of a result that names it; else empty. */
  name: string;
  /** Of a result: the tool failed. */
  failed: boolean;
  /** The text, the arguments of a call, or the text of a result. */
  text: string;
}

/**
 * Functions in place of parts of the engine, each on its own. They must answer at once; where one
 * throws or returns something else, ours goes on, and `failures` says so.
 */
export interface SummaryProtocols {
  /** Writes the messages as the text that the summarizer is given. */
  format?: ((pieces: SummaryPiece[]) => string) | undefined;
  /** Shortens the result of a tool, before it is summarized. */
  prune?: ((result: SummaryPiece) => string) | undefined;
  /** Writes the summary where no summarizer does; not blank, not over `maxTokens`. */
  build?: ((request: SummaryBuildRequest) => string) | undefined;
  /**
   * Checks what a summarizer wrote: nothing or true takes it, a text says why not. What is blank,
   * over its cap or no smaller than what it replaces is refused besides.
   */
  validate?: ((request: SummaryCheckRequest) => string | boolean | null | undefined) | undefined;
}

/** What a summary is built from. */
export interface SummaryBuildRequest {
  /** The previous summary. */
  previous: string | null;
  pieces: SummaryPiece[];
  /** Names of the sections. */
  sections: string[];
  focus: string | null;
  maxTokens: number;
}

/** What a summary is held against. */
export interface SummaryCheckRequest {
  text: string;
  /** Names of the sections. */
  sections: string[];
  /** Its estimated tokens. */
  tokens: number;
}

/** The recall tool. */
export interface RecallOptions {
  /** Its name. @default 'recall' */
  name?: string | undefined;
  /** Most tokens of a page; never more than half of the room left. @default 4000 */
  pageTokens?: number | undefined;
}

/** What the host asks of one plan. */
export interface PlanRequest {
  /** Real size of the last view that was sent: the whole prompt, cached tokens included. */
  usage?: { inputTokens: number } | undefined;
  /** The provider refused the last view with this error. */
  overflow?: { status?: number | undefined; body: string } | undefined;
  /** Compact as far as possible, whatever the size. */
  force?: boolean | undefined;
  /** What a summary should give the most room to. */
  focus?: string | undefined;
  /** A summary is to start over from the first message, without the previous one. */
  fresh?: boolean | undefined;
  /**
   * Say what would be decided, and decide nothing. No effects are asked for: the local summarizer
   * stands in for the host's.
   */
  dryRun?: boolean | undefined;
  /** The provider keeps the conversation itself; the request holds only what is new. */
  serverHistory?: boolean | undefined;
}

/** A summary is wanted. Answer with its text. */
export interface SummarizeEffect {
  kind: 'summarize';
  id: number;
  /** Instructions, for the system prompt. */
  system: string;
  /** The span and the task, flat text without tool blocks, for one user message. */
  prompt: string;
  /** Most tokens of the answer. */
  maxTokens: number;
  /** First message of the span. */
  from: number;
  /** The message after its last. */
  to: number;
  /** 1, or 2 where the first answer was refused; the prompt then says why. */
  attempt: number;
  /**
   * Where `summary.request` is `append`: send these, as they were sent last, and `prompt` as a user
   * message behind them, with the tools and instructions of every call; `system` is empty.
   */
  messages?: object[];
}

/** A burst is about to begin. Answer with go. */
export interface BurstEffect {
  kind: 'burst';
  id: number;
  /** The view has reached the trigger, the provider refused it, or the host wants it. */
  cause: 'size' | 'overflow' | 'force';
  /** Size of the view. */
  tokens: number;
  /** Size at which the burst may stop. */
  target: number;
  /** First message of the protected tail. */
  tail: number;
}

/**
 * Messages are about to be folded into the summary, or to be dropped without one. Save what you want
 * of them, and answer with done.
 */
export interface FlushEffect {
  kind: 'flush';
  id: number;
  /** Their whole text. Each message is handed over once. */
  text: string;
  /** First message. */
  from: number;
  /** The message after the last. */
  to: number;
}

/** A content is to be kept. Answer with done. */
export interface PutEffect {
  kind: 'put';
  id: number;
  /** Namespace, slash, 64 hexadecimal digits. */
  key: string;
  content: string;
}

/** Something that the host must do before a plan can go on. */
export type Effect = SummarizeEffect | PutEffect | BurstEffect | FlushEffect;

/** The host's answer to an effect. */
export type Reply =
  | { kind: 'text'; text: string }
  | { kind: 'done' }
  /** A burst may begin, unless `veto`; messages at `pins` are never compacted from now on. */
  | { kind: 'go'; veto?: boolean; pins?: number[] }
  | { kind: 'failed'; message: string };

/** Where the loop stands. */
export type Step =
  /** Perform these; empty while others are still due. */
  | { kind: 'effects'; effects: Effect[] }
  | { kind: 'done'; outcome: Outcome }
  /** The reply belonged to a plan that was abandoned. */
  | { kind: 'idle' };

/**
 * Why a plan ended as it did.
 * - `under_trigger`: the view is small enough
 * - `compacted`: decisions were taken
 * - `unknown_window`: no window was given and none was learned
 * - `nothing_to_compact`: over the trigger, but no stage can make the view smaller
 * - `cannot_fit`: over the hard limit, and it cannot be made to fit
 * - `rate_limit`, `not_an_overflow`: the error given as `overflow` is none
 * - `vetoed`: the hook before the burst said no
 * - `server_side_history`: the provider keeps the conversation itself, so nothing is touched
 */
export type Reason =
  | 'under_trigger'
  | 'compacted'
  | 'unknown_window'
  | 'nothing_to_compact'
  | 'cannot_fit'
  | 'rate_limit'
  | 'not_an_overflow'
  | 'vetoed'
  | 'server_side_history';

/**
 * Why a decision was taken.
 * - `watermark`: the view had reached the watermark of the stage
 * - `limit`: it was over the hard limit
 * - `overflow`, `forced`: the provider refused the view, or the host asked for it
 * - `bytes`, `images`: the request held more of them than `maxBytes` or `maxImages`
 * - `signature`: signed reasoning, whose signature covers what was rewritten before it
 */
export type Cause =
  | 'watermark'
  | 'limit'
  | 'overflow'
  | 'forced'
  | 'bytes'
  | 'images'
  | 'signature';

/** What a burst means for the provider's prompt cache. */
export interface CacheReport {
  /** Bytes of the view's JSON that stand as before, from its start: whole messages. */
  prefixBytes: number;
  /**
   * Tokens of those, and of what precedes messages in a request: instructions and tools. 0 where
   * the recall tool is new among these.
   */
  prefixTokens: number;
  /** Tokens of the view behind that, which the cache has to be told anew. */
  rereadTokens: number;
}

/** One decision of a burst. */
export interface Decision {
  /** Its name; of a stage of your own, the one you gave it. */
  stage: StageName | (string & {});
  reason: Cause;
  kind:
    | 'offloaded'
    | 'cleared'
    | 'elided'
    /** An identical result stands further on. */
    | 'duplicate'
    /** The same call was made again further on. */
    | 'superseded'
    /** Reasoning that left. */
    | 'removed'
    | 'covered'
    | 'dropped';
  /** First message. */
  index: number;
  /** Part of it. */
  part: number;
  /** covered, dropped: the message after the last. */
  to?: number;
  /** Reference for recall. */
  ref?: string;
  tokensSaved: number;
}

/** An effect that did not succeed. */
export interface Failure {
  /** What failed: an effect, a function of `SummaryProtocols`, or `decide`: a stage of your own. */
  effect: Effect['kind'] | keyof SummaryProtocols | 'decide';
  /** `host` where the host failed, else why the reply was refused; `refused` by `validate`. */
  code:
    | 'host'
    | 'blank'
    | 'too_long'
    | 'not_smaller'
    | 'tool_call'
    | 'echo'
    | 'missing_sections'
    | 'refused';
  message: string;
}

/** Something malformed in the transcript that the view mends. */
export interface Repair {
  kind:
    | 'orphan_result'
    | 'unanswered_call'
    | 'duplicate_id'
    /** An item of OpenAI Responses whose id an earlier one has. */
    | 'duplicate_item'
    /** A request for approval without its call, or a response without its request. */
    | 'orphan_approval'
    | 'empty_message'
    /** An empty text among other content. */
    | 'empty_text'
    /** A result that is marked as an error and says nothing. */
    | 'empty_error'
    /** Reasoning at the end of a turn: nothing followed it. */
    | 'trailing_reasoning'
    /** What stood before or between the results of a turn: it follows them. */
    | 'misplaced_content'
    /** Reasoning that nothing of the model follows, as aborted responses leave it. */
    | 'stranded_reasoning'
    /** A response of a Gemini function that is no object. */
    | 'bare_response'
    /** The id of a Gemini function's response whose call has none, while others of the turn have. */
    | 'stray_id'
    /** Cache markers beyond the four that a request may carry: those of the oldest messages. */
    | 'cache_marker'
    /** The assistant begins where only the user may. */
    | 'assistant_first'
    /** An empty `tool_calls` array, which the view leaves out. */
    | 'empty_calls'
    | 'lone_surrogate'
    | 'null_result'
    /** Arguments of a call that are no string: their JSON stands there as one. */
    | 'object_arguments'
    /** A call without arguments: an empty object stands there. */
    | 'no_arguments'
    | 'misplaced_result';
  /** Message of the transcript. */
  index: number;
  /** Call id. */
  id?: string;
  /** What the view shows instead. */
  detail: string;
}

/** Something in the transcript that a provider would refuse. */
export interface Problem {
  kind: Repair['kind'];
  /** Message of the transcript. */
  index: number;
  /** Call id. */
  id?: string;
  /** What the provider says to it. */
  says: string;
  /** How the view mends it. */
  repair: string;
}

/** What a message of the transcript holds, whatever the view shows of it. */
export interface MessageSize {
  role: 'system' | 'user' | 'assistant' | 'tool' | 'other';
  /** Those of the parts and of the framing; not corrected by reported usage. */
  tokens: number;
  parts: PartSize[];
}

/** The same for a part of it. */
export interface PartSize {
  kind: 'text' | 'reasoning' | 'call' | 'result' | 'image' | 'file' | 'opaque';
  tokens: number;
  /** Of a call or a result: the tool. */
  tool?: string;
  /** Equal in sessions with the same secret where kind and content are. */
  digest: number;
}

/** Something the host should know. */
export interface Notice {
  code:
    | 'unknown_window'
    | 'cannot_fit'
    /** More bytes or images than allowed, and no way to have less. */
    | 'over_bytes'
    | 'empty_view'
    | 'missing_sections'
    | 'summary_dropped'
    | 'decisions_dropped';
  message: string;
}

/** A new summary. */
export interface SummaryReport {
  text: string;
  /** The message that it ends before. */
  covered: number;
  by: 'host' | 'local';
  tokens: number;
  /** Identifiers of the span: found, kept by the summary as written, appended to it verbatim. */
  audit: { found: number; kept: number; appended: number };
}

/** A summary that there was, or is. */
export interface SummaryVersion {
  /** Counts the summaries of the session from 1; 0 where an old checkpoint does not say. */
  version: number;
  /** The message that it ends before. */
  covered: number;
  by: 'host' | 'local';
  /** Reference by which recall pages through the messages. */
  ref: string;
}

/** Where a learned window holds; empty where it is not known. */
export interface WindowKey {
  endpoint: string;
  model: string;
}

/** What came of a plan. */
export interface Outcome {
  /** New decisions were taken. */
  compacted: boolean;
  reason: Reason;
  /** Stages that took decisions, in order. */
  stages: (StageName | (string & {}))[];
  /** Size of the view before, tool schemas included. */
  tokensBefore: number;
  /** The same after. */
  tokensAfter: number;
  /** Whether that is within usable; true where no window is known. */
  fits: boolean;
  window: number | null;
  /** Window minus reserve: the hard limit. */
  usable: number | null;
  /** Size that starts a burst. */
  trigger: number | null;
  /** Size that ends one. */
  target: number | null;
  /** The plan answered an overflow error. */
  overflow: boolean;
  decisions: Decision[];
  /** What stays in the provider's prompt cache; null where nothing was decided. */
  cache: CacheReport | null;
  failures: Failure[];
  /** Malformed messages met since the last outcome. */
  repairs: Repair[];
  /** The summary, where a new one was taken. */
  summary: SummaryReport | null;
  notices: Notice[];
  /**
   * The size that could be reached, where it does not fit: what is left is pinned, unanswered,
   * beside the messages, or what the stages may not touch.
   */
  smallest: number | null;
}

/** Size of a view. */
export interface Estimate {
  /** The whole view, tool schemas included. */
  tokens: number;
  /** The tool schemas; that of the recall tool too, while it is offered. */
  tools: number;
  /** Messages of the transcript. */
  messages: number;
  /** Real tokens per estimated one, as learned from usage. */
  ratio: number;
  window: number | null;
  usable: number | null;
  trigger: number | null;
  target: number | null;
  /** Tokens as a share of usable. */
  full: number | null;
}

/**
 * How a message stands in the view, and why.
 * - `system`, `pinned`, `unanswered`, `tail`: as it is, by what it is or where it stands
 * - `kept`: as it is; a stage left it among messages that it dropped
 * - `untouched`: as it is; nothing had to be decided on it so far
 * - `changed`: some of its parts were decided on
 * - `mended`: the provider would refuse it as it is
 * - `covered`, `dropped`: not there; the summary stands for it, or it left without one
 */
export type Standing =
  | 'system'
  | 'pinned'
  | 'unanswered'
  | 'tail'
  | 'kept'
  | 'untouched'
  | 'changed'
  | 'mended'
  | 'covered'
  | 'dropped';

/** Kinds of the parts that messages consist of. */
export type PartKind = 'text' | 'reasoning' | 'call' | 'result' | 'image' | 'file' | 'opaque';

/** Why a message is as it is in the view. */
export interface Explanation {
  index: number;
  role: 'system' | 'user' | 'assistant' | 'tool' | 'other';
  standing: Standing;
  /** The same in words. */
  text: string;
  /** First message of its unit: what is kept or dropped together. */
  from: number;
  /** The message after the last of its unit. */
  to: number;
  /** As the transcript has it. */
  tokens: number;
  /** In the view. */
  shown: number;
  /** Reference of the summary that stands for it. */
  ref?: string;
  parts: ExplainedPart[];
  /** What the view mends of it. */
  repairs: Repair[];
}

/** One part of a message that is explained. */
export interface ExplainedPart {
  /** Its place in the message. */
  part: number;
  kind: PartKind;
  /** Tool of a call or of its result. */
  tool?: string;
  /** As the transcript has it. */
  tokens: number;
  /** In the view. */
  shown: number;
  /** What was decided on it. */
  decision?: Decision['kind'];
  /** Reference for recall. */
  ref?: string;
}

/** What compaction came to so far. */
export interface Stats {
  /** Messages of the transcript. */
  messages: number;
  /** All of them, and what goes with them: the request without tidemark. */
  transcriptTokens: number;
  /** The view, and what goes with it. */
  tokens: number;
  /** Tokens as a share of usable. */
  full: number | null;
  /** Bursts that decided something. */
  bursts: number;
  /** Calls of your summarizer. */
  summarizerCalls: number;
  /** Tokens that all bursts took out of the view. */
  tokensSaved: number;
  /** Parts that are smaller or gone in the view. */
  parts: number;
  /** Messages that the summary stands for. */
  covered: number;
  /** Messages that were dropped. */
  dropped: number;
  /** Tokens by which the view grows from call to call, lately. */
  growth: number;
  /** Calls until the next burst at that pace. */
  turnsToBurst: number | null;
}

/** A tool as a request of OpenAI Chat Completions carries it. */
export interface OpenAIChatTool {
  type: 'function';
  function: { name: string; description: string; parameters: Record<string, unknown> };
}

/** A tool as a request of OpenAI Responses carries it. */
export interface OpenAIResponsesTool {
  type: 'function';
  name: string;
  description: string;
  parameters: Record<string, unknown>;
}

/** A tool as a request of Anthropic Messages carries it. */
export interface AnthropicTool {
  name: string;
  description: string;
  input_schema: Record<string, unknown>;
}

/** A tool as a request of Gemini carries it. */
export interface GeminiTool {
  functionDeclarations: {
    name: string;
    description: string;
    parametersJsonSchema: Record<string, unknown>;
  }[];
}

/** A tool as the language models of the AI SDK take it. */
export interface AiSdkTool {
  type: 'function';
  name: string;
  description: string;
  inputSchema: Record<string, unknown>;
}

/** A tool as a request of the session's wire format carries it. */
export type ToolDefinition =
  | OpenAIChatTool
  | OpenAIResponsesTool
  | AnthropicTool
  | GeminiTool
  | AiSdkTool;

/** The recall tool without the shape of a wire format. */
export interface RecallTool {
  name: string;
  description: string;
  /** JSON schema of the arguments. */
  parameters: Record<string, unknown>;
}

/** What the engine says of a recall call. */
export type RecallStep =
  /** The answer for the model. */
  | { kind: 'page'; text: string }
  /** Ask the store for the key, and hand what it holds to `recallFetched`. */
  | { kind: 'fetch'; key: string };

/** Arguments of a recall call; a ref or a pattern must be there. */
export interface RecallArgs {
  /** Reference shown by a marker. */
  ref?: string | undefined;
  /** First character of the page, or first match. */
  offset?: number | undefined;
  /** Characters of the page. */
  limit?: number | undefined;
  /** Text to look for; without a ref in all messages. */
  pattern?: string | undefined;
}

/** What a provider's error means for the context window. */
export type ErrorClass =
  | { kind: 'overflow'; limit: number | null; requested: number | null }
  | { kind: 'too_many_bytes'; limit: number | null }
  | { kind: 'too_many_images'; limit: number | null }
  | { kind: 'shape_fault' }
  | { kind: 'rate_limit' }
  | { kind: 'other' };

/**
 * Keeps contents that were taken out of the view. `put` and `get` are enough for that; the rest is
 * for whoever looks after the store.
 */
export interface Store {
  /** Keeps a content under a key, for good as far as the store promises. */
  put(key: string, content: string): void | Promise<void>;
  /** The content, or undefined. */
  get(key: string): string | undefined | Promise<string | undefined>;
  /** Whether there is a content, without reading it. */
  has?(key: string): boolean | Promise<boolean>;
  /** Removes a content; one that is not there is removed already. */
  delete?(key: string): void | Promise<void>;
  /** Keys that start so, in no order: those of a namespace start with it and a slash. */
  list?(prefix: string): Iterable<string> | AsyncIterable<string>;
  /**
   * Puts the content only if `previous` is what the store holds, undefined for nothing, and says
   * whether it did. Nobody else can put one in between.
   */
  swap?(key: string, content: string, previous: string | undefined): boolean | Promise<boolean>;
}

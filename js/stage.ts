import { wrong } from './request.js';
import type {
  ChatMessage,
  CustomStage,
  DecideEffect,
  StageContext,
  StageName,
  StageOptions,
  StagePart,
  StageUnit,
} from './types.js';

/** What a stage wants, as the engine reads it. */
type Wanted =
  | { kind: 'clear'; index: number; part: number }
  | { kind: 'offload'; index: number; part: number; tokens?: number | undefined }
  | { kind: 'drop'; from: number; to: number }
  | { kind: 'summarize'; to: number };

/** Hands a decision to the engine, which checks it; returns the tokens that it saves. */
type Propose = (wanted: Wanted) => number;

type Stages<M> = (StageName | StageOptions | CustomStage<M>)[];

/** @internal The list of stages as the engine reads it, with the caller's own taken out. */
export function readStages<M>(
  stages: Stages<M> | undefined,
  policy: CustomStage<M>['plan'] | undefined,
): { stages: unknown; plans: (CustomStage<M>['plan'] | undefined)[] } {
  if (policy !== undefined) {
    if (typeof policy !== 'function') throw wrong('options.policy', 'expected a function');
    if (stages !== undefined) {
      throw wrong('options.policy', 'takes the place of all stages: leave `stages` away');
    }
    // From the smallest size on: it has the last word on each call.
    return { stages: [{ stage: 'custom', name: 'policy', at: 2 }], plans: [policy] };
  }
  if (!Array.isArray(stages)) return { stages, plans: [] };
  const plans = stages.map((stage, at) => {
    if (typeof stage !== 'object' || stage === null || !('plan' in stage)) return undefined;
    const place = `options.stages[${at}]`;
    if (typeof stage.plan !== 'function') throw wrong(`${place}.plan`, 'expected a function');
    if (typeof stage.name !== 'string' || stage.name === '') {
      throw wrong(`${place}.name`, 'expected the name that outcomes tell');
    }
    return stage.plan.bind(stage);
  });
  const named = stages.map((stage, at) => {
    if (!plans[at]) return stage;
    const { plan, ...options } = stage as CustomStage<M>;
    return { ...options, stage: 'custom' };
  });
  return { stages: named, plans };
}

/** @internal What a stage of the caller's own sees and may do. */
export class Context<M = ChatMessage> implements StageContext<M> {
  readonly stage: string;
  readonly target: number;
  readonly limit: number;
  readonly overflow: boolean;
  readonly forced: boolean;
  readonly messages: readonly M[];
  readonly parts: readonly StagePart[];
  readonly units: readonly StageUnit[];
  readonly #propose: Propose;
  #tokens: number;

  constructor(seen: DecideEffect['context'], messages: readonly M[], propose: Propose) {
    this.stage = seen.stage;
    this.target = seen.target;
    this.limit = seen.limit;
    this.overflow = seen.overflow;
    this.forced = seen.forced;
    this.parts = seen.parts;
    this.units = seen.units;
    this.messages = messages;
    this.#tokens = seen.tokens;
    this.#propose = propose;
  }

  get tokens(): number {
    return this.#tokens;
  }

  clear({ index, part }: { index: number; part: number }): number {
    return this.#want({ kind: 'clear', index, part });
  }

  offload({ index, part }: { index: number; part: number }, tokens?: number): number {
    return this.#want({ kind: 'offload', index, part, tokens });
  }

  drop({ from, to }: { from: number; to: number }): number {
    return this.#want({ kind: 'drop', from, to });
  }

  summarize(to: number): number {
    return this.#want({ kind: 'summarize', to });
  }

  #want(wanted: Wanted): number {
    const saved = this.#propose(wanted);
    this.#tokens -= Math.min(saved, this.#tokens);
    return saved;
  }
}

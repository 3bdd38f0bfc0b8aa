import * as z from 'zod';
import { KlatchError } from '../../errors.ts';
import { changeEventKinds } from '../../model/change-event.ts';
import {
  defaultFilter,
  hookFormats,
  MAX_MAX_AGE_S,
  MAX_TRIGGER_LENGTH,
  MAX_TRIGGERS,
  type HookFilter,
  type HookFormat,
} from '../../model/hook-format.ts';
import { hookSecretKey, hookToken } from '../../model/hook-secret.ts';
import { receiverFormat } from '../../receivers/formats.ts';
import type { NewHook } from '../../storage/hooks/hooks.ts';

const MAX_BATCH = 100;
const ONE_WORD = /^\S+$/;

const oneOf = <const Value extends string>(values: readonly Value[]) =>
  z.enum(values, { error: `must be one of ${values.join(', ')}` });
const withoutRepeats = <Value>(values: readonly Value[]): Value[] => [...new Set(values)];

/** The options of a hook's deliveries, as every interface takes them. */
export const hookOptionsSchema = {
  /** The format of its requests: Klatch's own, or that of another product. */
  format: oneOf(hookFormats).optional(),
  order: oneOf(['strict', 'none']).optional(),
  batch: z.int().min(1).max(MAX_BATCH).optional(),
  signature: oneOf(['v1', 'v1a', 'both']).optional(),
  skip: z
    .array(oneOf(['webhook', 'bot']))
    .max(2)
    .transform(withoutRepeats)
    .optional(),
  /**
   * In formats other than `klatch`, the hook gets only messages that begin with one of these. A trigger with a letter
   * or a digit must be the whole first word, as written; any other one, such as `!`, must be its beginning.
   */
  triggers: z
    .array(z.string().max(MAX_TRIGGER_LENGTH).regex(ONE_WORD, 'must be one word without white space'))
    .max(MAX_TRIGGERS)
    .transform(withoutRepeats)
    .optional(),
  /**
   * In seconds, in formats other than `klatch`: the hook skips messages that are older at an attempt; null: it skips
   * none.
   */
  max_age: z.int().min(1).max(MAX_MAX_AGE_S).nullable().optional(),
  /** The changes of messages that it gets besides new messages. */
  events: z.array(oneOf(changeEventKinds)).max(changeEventKinds.length).transform(withoutRepeats).optional(),
};

type HookOptionsInput = z.infer<z.ZodObject<typeof hookOptionsSchema>>;
type HookOptions = Pick<NewHook, 'format' | 'order' | 'batch' | 'signature' | 'events' | keyof HookFilter>;
/** An absent option stays as it is; a new format brings its own filter. */
type HookOptionChanges = { readonly [Key in keyof HookOptions]?: HookOptions[Key] | undefined };

const DEFAULT_OPTIONS: HookOptions = {
  format: 'klatch',
  order: 'strict',
  batch: 1,
  signature: 'v1',
  events: [],
  ...defaultFilter('klatch'),
};

/** The options of a registration, with the defaults of absent ones. */
export function newHookOptions(input: HookOptionsInput): HookOptions {
  return optionsAfterChange(DEFAULT_OPTIONS, hookOptionChanges(input));
}

/** The changes that a request asks for. */
export function hookOptionChanges({ max_age: maxAgeS, ...changes }: HookOptionsInput): HookOptionChanges {
  return { ...changes, maxAgeS };
}

/** The options of a hook after a change. */
export function optionsAfterChange(current: HookOptions, changes: HookOptionChanges): HookOptions {
  const { format = current.format, order = current.order, batch = current.batch } = changes;
  const { signature = current.signature, events = current.events } = changes;
  const filter = format === current.format ? current : defaultFilter(format);
  const { skip = filter.skip, triggers = filter.triggers, maxAgeS = filter.maxAgeS } = changes;
  return { format, order, batch, signature, events, skip, triggers, maxAgeS };
}

/** Throws `invalid_hook_url` or `invalid_input`, with a remedy, where a hook's format does not support its options. */
export function requireOptionsOfFormat(url: string, options: HookOptions): void {
  const { format, batch, events, triggers, maxAgeS } = options;
  const receiver = receiverFormat(format);
  if (receiver === null) {
    const only = 'is for the formats of other products, and this reverse webhook has format klatch';
    if (triggers.length > 0) throw invalid(`triggers: ${only}`);
    if (maxAgeS !== null) throw invalid(`max_age: ${only}`);
    return;
  }
  const problem = receiver.urlProblem(new URL(url));
  if (problem !== null) throw new KlatchError('invalid_hook_url', { sentence: problem });
  if (batch > 1) throw invalid(`batch: must be 1, since format ${format} has one message in a request`);
  if (events.length > 0) throw invalid(`events: must be empty, since format ${format} cannot tell of changes`);
}

const invalid = (sentence: string): KlatchError => new KlatchError('invalid_input', { sentence });

/** The token in the requests of a hook, where its format has one. */
export function tokenOfFormat(format: HookFormat, openSecret: () => string): { token?: string } {
  return format === 'mattermost' ? { token: hookToken(hookSecretKey(openSecret())) } : {};
}

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
import { countCodePoints } from '../core/message-text.ts';

const MAX_BATCH_MESSAGES = 100;
const MAX_DESCRIPTION_CODE_POINTS = 200;
const DESCRIPTION_TOO_LONG = `has more than ${MAX_DESCRIPTION_CODE_POINTS} characters`;
const ONE_WORD = /^\S+$/;

const oneOf = <const Value extends string>(values: readonly Value[]) =>
  z.enum(values, { error: `must be one of ${values.join(', ')}` });
const withoutRepeats = <Value>(values: readonly Value[]): Value[] => [...new Set(values)];

/** The purpose of a hook. It is for people to read and changes nothing about deliveries. */
export const hookDescriptionSchema = z
  .string()
  // A character has at most two UTF-16 units.
  .max(2 * MAX_DESCRIPTION_CODE_POINTS, { error: DESCRIPTION_TOO_LONG, abort: true })
  .refine((text) => countCodePoints(text) <= MAX_DESCRIPTION_CODE_POINTS, DESCRIPTION_TOO_LONG)
  .describe('Purpose, for people to read.');

/** The options of a hook, as every interface accepts them. */
export const hookOptionsSchema = {
  format: oneOf(hookFormats).optional().describe('How its requests look: ours, or those of another product.'),
  order: oneOf(['strict', 'none']).optional().describe('`strict`, the default: one request after the other, in order.'),
  batch: z
    .int()
    .min(1)
    .max(MAX_BATCH_MESSAGES)
    .optional()
    .describe('The most messages in a request; the default is 1.'),
  signature: oneOf(['v1', 'v1a', 'both'])
    .optional()
    .describe("By the secret (`v1`), by the server's keys, or by both."),
  skip: z
    .array(oneOf(['webhook', 'bot']))
    .max(2)
    .transform(withoutRepeats)
    .optional()
    .describe('The senders whose messages it does not get.'),
  triggers: z
    .array(z.string().max(MAX_TRIGGER_LENGTH).regex(ONE_WORD, 'must be one word without white space'))
    .max(MAX_TRIGGERS)
    .transform(withoutRepeats)
    .optional()
    .describe(
      'It gets only messages that begin with one of these, in formats other than `klatch`. One with a letter or a digit is the whole first word, as it is written; any other one, such as `!`, is its beginning.',
    ),
  max_age: z
    .int()
    .min(1)
    .max(MAX_MAX_AGE_S)
    .nullable()
    .optional()
    .describe(
      'In seconds: messages that are older at an attempt are passed over, in formats other than `klatch`; null: none is.',
    ),
  events: z
    .array(oneOf(changeEventKinds))
    .max(changeEventKinds.length)
    .transform(withoutRepeats)
    .optional()
    .describe('Events that it gets besides new messages: changes of messages.'),
};

type HookOptionsInput = z.infer<z.ZodObject<typeof hookOptionsSchema>>;
type HookOptions = Pick<NewHook, 'format' | 'order' | 'batch' | 'signature' | 'events' | keyof HookFilter>;
/**
 * Changes of a hook's options. An option without a value stays as it is, except that a new format replaces the filter:
 * `skip`, `triggers` and `maxAgeS`.
 */
type HookOptionChanges = { readonly [Key in keyof HookOptions]?: HookOptions[Key] | undefined };

const DEFAULT_OPTIONS: HookOptions = {
  format: 'klatch',
  order: 'strict',
  batch: 1,
  signature: 'v1',
  events: [],
  ...defaultFilter('klatch'),
};

/** The options of a new hook: those of the request, and defaults for the others. */
export function newHookOptions(input: HookOptionsInput): HookOptions {
  return optionsAfterChange(DEFAULT_OPTIONS, hookOptionChanges(input));
}

/** The changes of options that a request asks for. */
export function hookOptionChanges({ max_age: maxAgeS, ...changes }: HookOptionsInput): HookOptionChanges {
  return { ...changes, maxAgeS };
}

export function optionsAfterChange(current: HookOptions, changes: HookOptionChanges): HookOptions {
  const { format = current.format, order = current.order, batch = current.batch } = changes;
  const { signature = current.signature, events = current.events } = changes;
  const filter = format === current.format ? current : defaultFilter(format);
  const { skip = filter.skip, triggers = filter.triggers, maxAgeS = filter.maxAgeS } = changes;
  return { format, order, batch, signature, events, skip, triggers, maxAgeS };
}

/**
 * Throws if a hook's format does not support its other options (`invalid_input`) or its URL (`invalid_hook_url`). The
 * error says what to do.
 */
export function requireOptionsOfFormat(url: string, options: HookOptions): void {
  const { format, batch, events, triggers, maxAgeS } = options;
  const receiver = receiverFormat(format);
  if (receiver === null) {
    const foreignFormatsOnlyText =
      'is for the formats of other products, and this reverse webhook has format klatch; leave it out';
    if (triggers.length > 0) throw invalid(`triggers: ${foreignFormatsOnlyText}`);
    if (maxAgeS !== null) throw invalid(`max_age: ${foreignFormatsOnlyText}`);
    return;
  }
  const problem = receiver.urlProblem(new URL(url));
  if (problem !== null) throw new KlatchError('invalid_hook_url', { sentence: problem });
  if (batch > 1) throw invalid(`batch: must be 1, since format ${format} has one message in a request`);
  if (events.length > 0) throw invalid(`events: must be empty, since format ${format} cannot tell of changes`);
}

const invalid = (sentence: string): KlatchError => new KlatchError('invalid_input', { sentence });

/** The token that the requests of a hook carry; empty if its format has no token. */
export function tokenOfFormat(format: HookFormat, openSecret: () => string): { token?: string } {
  return format === 'mattermost' ? { token: hookToken(hookSecretKey(openSecret())) } : {};
}

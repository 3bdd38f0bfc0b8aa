import { z } from 'zod';
import { KlatchError, type ErrorCode } from '../errors.ts';
import type { Scope } from '../model/scopes.ts';
import { callerSource, isAdministrator, type AccountCaller, type Caller } from './caller.ts';
import { FRAME_LIMITS, limitsOf, type BodyLimits } from './input-limits.ts';
import { findPlace, type Place, type PlaceKind } from './place.ts';
import type { Services } from './services.ts';
import { checkInputText, misfit } from './untrusted-input.ts';

/**
 * Who may call an operation. `anybody`: without signing in. `account`: people, and bots with the scope. `person`: people
 * alone. `administrator`: administrators of the installation. `system`: the command line on the server's machine.
 * The others are members of the conversation that the operation is about, from this role on; administrators may do to
 * groups, and never to what is said in them, what their owners may.
 */
export type Who =
  'anybody' | 'account' | 'person' | 'administrator' | 'system' | 'member' | 'group-admin' | 'group-owner';

/** What every operation says about itself. */
interface Definition<Input, Output> {
  /** `noun.verb`, the name on the wire. */
  readonly name: string;
  /** One sentence for the documents. */
  readonly summary: string;
  readonly input: z.ZodType<Input>;
  readonly output: z.ZodType<Output>;
  /** What a bot's token needs; null: no bot may call it, or everybody may. */
  readonly scope: Scope | null;
  /** The errors of its own, beside those that every operation can have. */
  readonly errors: readonly ErrorCode[];
  /** Where its input may be larger than that of others with the same callers. */
  readonly limits?: BodyLimits;
}

/** One verb of the product, defined once and served by every edge: what it takes, what it gives, who may call it. */
export interface Operation<Input = unknown, Output = unknown> extends Definition<Input, Output> {
  readonly who: Who;
  /** The key of the input that names what it is about; null: it is about no conversation. */
  readonly on: PlaceKind | null;
  readonly run: (services: Services, input: Input, caller: Caller, place: Place | null) => Promise<Output>;
}

/** An operation that is about no conversation. */
type Plain<Input, Output> = Definition<Input, Output> & {
  readonly who: Exclude<Who, 'member' | 'group-admin' | 'group-owner'>;
  readonly run: (services: Services, input: Input, caller: Caller) => Promise<Output>;
};

/** An operation about the conversation, group or hook that its input names. */
type Placed<Input, Output> = Definition<Input, Output> & {
  readonly who: 'member' | 'group-admin' | 'group-owner';
  readonly on: PlaceKind;
  readonly run: (services: Services, input: Input, caller: Caller, place: Place) => Promise<Output>;
};

/** Types an operation's function by its schemas. */
export function defineOperation<Input, Output>(operation: Plain<Input, Output>): Operation<Input, Output> {
  return { ...operation, on: null };
}

/** The same for one about a conversation: its function gets the place, which the caller may be in. */
export function definePlacedOperation<Input, Output>(operation: Placed<Input, Output>): Operation<Input, Output> {
  const run: Operation<Input, Output>['run'] = (services, input, caller, place) =>
    operation.run(services, input, caller, place!);
  return { ...operation, run };
}

/** Parses untrusted input and runs the operation. Throws KlatchError for whatever the caller did wrong. */
export async function callOperation(
  operation: Operation,
  call: { services: Services; caller: Caller; input: unknown },
): Promise<unknown> {
  const { services, caller } = call;
  admitCaller(operation, caller);
  const source = callerSource(caller);
  const input = services.parseBudget.measure(source, () => checkInput(operation, caller, call.input));
  const { on, who } = operation;
  const place = on === null ? null : await findPlace(services, caller, { on, who, input: input as object });
  return operation.run(services, input, caller, place);
}

/** The values are counted before the schema sees them: zod took 100 ms to refuse 24,000 keys. */
function checkInput(operation: Operation, caller: Caller, input: unknown): unknown {
  checkInputText(input, caller.kind === 'system' ? FRAME_LIMITS.values : limitsOf(operation).values);
  const parsed = operation.input.safeParse(input ?? {});
  if (!parsed.success) throw misfit(parsed.error);
  return parsed.data;
}

/**
 * Throws `unauthenticated`, `forbidden` or `missing_scope`, as far as it can be said before the input is read: nobody
 * learns from it what there is.
 */
export function admitCaller({ who, scope }: Pick<Operation, 'who' | 'scope'>, caller: Caller): void {
  if (who === 'anybody' || caller.kind === 'system') return;
  if (caller.kind === 'nobody') throw new KlatchError('unauthenticated');
  if (who === 'system' || (who === 'administrator' && !isAdministrator(caller))) throw new KlatchError('forbidden');
  if (who === 'person' && caller.scopes !== null) throw new KlatchError('forbidden');
  if (caller.scopes !== null && (scope === null || !caller.scopes.has(scope))) {
    const sentence = scope === null ? 'Bots may not do this' : `The token of this bot does not have the scope ${scope}`;
    throw new KlatchError('missing_scope', { sentence });
  }
}

/** The account that calls. Throws `forbidden` for the administrator's command line, which is nobody's account. */
export function requireAccount(caller: Caller): AccountCaller {
  if (caller.kind === 'account') return caller;
  throw new KlatchError('forbidden', { sentence: 'Only an account can do this: call it with a session token' });
}

import type * as z from 'zod';
import type { ErrorCode } from '../../errors.ts';
import type { Scope } from '../../model/scopes.ts';
import type { Caller } from './caller.ts';
import type { BodyLimits } from './input-limits.ts';
import type { ConversationAccess, TargetKind } from './conversation-access.ts';
import type { Services } from './services.ts';

/**
 * Who may call an operation. `anybody`: without signing in. `account`: people, and bots with the scope. `person`:
 * people alone. `administrator`: administrators of the installation. `system`: the command line on the server's
 * machine. The others are members of the conversation that the operation is about, from this role on. Administrators of
 * the installation have an owner's rights in groups, but none over their messages.
 */
export type AllowedCallers =
  'anybody' | 'account' | 'person' | 'administrator' | 'system' | 'member' | 'group-admin' | 'group-owner';

/** The part of the definition that all operations have. */
interface OperationDefinition<Input, Output> {
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
  /** Given if its input may be larger than that of others with the same callers. */
  readonly limits?: BodyLimits;
}

/** One verb of the product, defined once and served by every edge: what it takes, what it gives, who may call it. */
export interface Operation<Input = unknown, Output = unknown> extends OperationDefinition<Input, Output> {
  readonly who: AllowedCallers;
  /** The key of the input that names what it is about; null: it is about no conversation. */
  readonly on: TargetKind | null;
  readonly run: (
    services: Services,
    input: Input,
    caller: Caller,
    access: ConversationAccess | null,
  ) => Promise<Output>;
}

/** An operation that is about no conversation. */
type UntargetedOperation<Input, Output> = OperationDefinition<Input, Output> & {
  readonly who: Exclude<AllowedCallers, 'member' | 'group-admin' | 'group-owner'>;
  readonly run: (services: Services, input: Input, caller: Caller) => Promise<Output>;
};

/** An operation about the conversation, group or hook that its input names. */
type TargetedOperation<Input, Output> = OperationDefinition<Input, Output> & {
  readonly who: 'member' | 'group-admin' | 'group-owner';
  readonly on: TargetKind;
  readonly run: (services: Services, input: Input, caller: Caller, access: ConversationAccess) => Promise<Output>;
};

/** Types an operation's function by its schemas. */
export function defineOperation<Input, Output>(
  operation: UntargetedOperation<Input, Output>,
): Operation<Input, Output> {
  return { ...operation, on: null };
}

/** As `defineOperation`, for an operation about a conversation: its function also gets the caller's access to it. */
export function defineTargetedOperation<Input, Output>(
  operation: TargetedOperation<Input, Output>,
): Operation<Input, Output> {
  const run: Operation<Input, Output>['run'] = (services, input, caller, access) =>
    operation.run(services, input, caller, access!);
  return { ...operation, run };
}

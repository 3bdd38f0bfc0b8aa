import type * as z from 'zod';
import type { ErrorCode } from '../../errors.ts';
import type { Scope } from '../../model/scopes.ts';
import type { Caller } from './caller.ts';
import type { BodyLimits } from './input-limits.ts';
import type { ConversationAccess, TargetKind } from './conversation-access.ts';
import type { Services } from './services.ts';

/**
 * The callers that may call an operation:
 * - `anybody`: also without signing in
 * - `account`: people, and bots with the scope
 * - `person`: only people
 * - `administrator`: administrators of the installation
 * - `system`: the command line on the server's machine
 * - `member`, `group-admin`, `group-owner`: members of the target's conversation with at least this role.
 *   Administrators of the installation may do in groups what an owner may, but may not read or write messages.
 */
export type AllowedCallers =
  'anybody' | 'account' | 'person' | 'administrator' | 'system' | 'member' | 'group-admin' | 'group-owner';

/** The fields that the definition of every operation has. */
interface OperationDefinition<Input, Output> {
  /** `noun.verb`, the name on the wire. */
  readonly name: string;
  /** A sentence that describes the operation in the documents. */
  readonly summary: string;
  readonly input: z.ZodType<Input>;
  readonly output: z.ZodType<Output>;
  /** The scope that a bot's token needs. Null: bots may not call the operation, or need no scope for it. */
  readonly scope: Scope | null;
  /** The operation's own errors; `commonErrors` are those of all operations. */
  readonly errors: readonly ErrorCode[];
  /** Limits of the operation's input, if they differ from those of other operations with the same callers. */
  readonly limits?: BodyLimits;
}

/** An operation, defined once and served by every interface: its input, its output, and who may call it. */
export interface Operation<Input = unknown, Output = unknown> extends OperationDefinition<Input, Output> {
  readonly who: AllowedCallers;
  /** The field of the input that names the target; null: the operation is not about a conversation, group or hook. */
  readonly on: TargetKind | null;
  readonly run: (
    services: Services,
    input: Input,
    caller: Caller,
    access: ConversationAccess | null,
  ) => Promise<Output>;
}

/** An operation that is not about a conversation. */
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

/** Defines an operation that is not about a conversation; the schemas give the types of `run`. */
export function defineOperation<Input, Output>(
  operation: UntargetedOperation<Input, Output>,
): Operation<Input, Output> {
  return { ...operation, on: null };
}

/**
 * Defines an operation about a conversation, group or hook; `run` also gets the caller's access to the conversation.
 */
export function defineTargetedOperation<Input, Output>(
  operation: TargetedOperation<Input, Output>,
): Operation<Input, Output> {
  const run: Operation<Input, Output>['run'] = (services, input, caller, access) =>
    operation.run(services, input, caller, access!);
  return { ...operation, run };
}

import { KlatchError } from '../../errors.ts';
import { callerSource, isAdministrator, type Caller } from './caller.ts';
import { FRAME_LIMITS, limitsOf } from './input-limits.ts';
import type { Operation } from './operation.ts';
import { authorize } from './conversation-access.ts';
import type { Services } from './services.ts';
import { checkValueCountAndStrings, validationError } from './untrusted-input.ts';

/** Parses untrusted input and runs the operation. Throws KlatchError for every mistake of the caller. */
export async function callOperation<Input, Output>(
  operation: Operation<Input, Output>,
  call: { services: Services; caller: Caller; input: unknown },
): Promise<Output> {
  const { services, caller } = call;
  authorizeCaller(operation, caller);
  const source = callerSource(caller);
  const input = services.parseBudget.measure(source, () => checkInput(operation, caller, call.input));
  const { on, who } = operation;
  const conversationAccess =
    on === null ? null : await authorize(services, caller, { on, requiredRole: who, input: input as object });
  return operation.run(services, input, caller, conversationAccess);
}

/** Refuses an input with too many values before zod checks it: zod took 100 ms to refuse 24,000 keys. */
function checkInput<Input>(
  operation: Pick<Operation<Input>, 'input' | 'who' | 'limits'>,
  caller: Caller,
  input: unknown,
): Input {
  checkValueCountAndStrings(input, caller.kind === 'system' ? FRAME_LIMITS.maxValues : limitsOf(operation).maxValues);
  const parsed = operation.input.safeParse(input ?? {});
  if (!parsed.success) throw validationError(parsed.error);
  return parsed.data;
}

const ONLY_FOR_COMMAND_LINE = 'Only the command line on the server may do this: use klatch there';
const ONLY_FOR_ADMINISTRATORS = 'Only administrators of this installation may do this: ask one of them';
const ONLY_FOR_PEOPLE = 'Bots may not do this: call it with the session of a person';

/**
 * Throws `unauthenticated`, `forbidden` or `missing_scope` if the caller may not call the operation, whatever its input
 * is. So these errors do not show what exists.
 */
export function authorizeCaller({ who, scope }: Pick<Operation, 'who' | 'scope'>, caller: Caller): void {
  if (who === 'anybody' || caller.kind === 'system') return;
  if (caller.kind === 'anonymous') throw new KlatchError('unauthenticated');
  if (who === 'system') throw new KlatchError('forbidden', { sentence: ONLY_FOR_COMMAND_LINE });
  if (who === 'administrator' && !isAdministrator(caller))
    throw new KlatchError('forbidden', { sentence: ONLY_FOR_ADMINISTRATORS });
  if (who === 'person' && caller.scopes !== null) throw new KlatchError('forbidden', { sentence: ONLY_FOR_PEOPLE });
  if (caller.scopes !== null && (scope === null || !caller.scopes.has(scope))) {
    const sentence =
      scope === null
        ? ONLY_FOR_PEOPLE
        : `The token of this bot does not have the scope ${scope}: its owner makes one that has it (tokens.create)`;
    throw new KlatchError('missing_scope', { sentence });
  }
}

import { z } from 'zod';
import { KlatchError } from '../errors.ts';
import type { Services } from './services.ts';

/** Who calls. `system` is the administrator on the server's own machine, through the control socket. */
export interface Caller {
  readonly kind: 'system';
}

/**
 * One verb of the product, defined once and served by every edge: what it takes, what it gives, who may call it.
 */
export interface Operation<Input = unknown, Output = unknown> {
  /** `noun.verb`, the name on the wire. */
  readonly name: string;
  /** One sentence for the documents. */
  readonly summary: string;
  readonly input: z.ZodType<Input>;
  readonly output: z.ZodType<Output>;
  readonly allows: (caller: Caller) => boolean;
  readonly run: (services: Services, input: Input, caller: Caller) => Promise<Output>;
}

/** Types an operation's function by its schemas. */
export function defineOperation<Input, Output>(operation: Operation<Input, Output>): Operation<Input, Output> {
  return operation;
}

/** Parses untrusted input and runs the operation. Throws KlatchError for whatever the caller did wrong. */
export async function callOperation(
  operation: Operation,
  call: { services: Services; caller: Caller; input: unknown },
): Promise<unknown> {
  if (!operation.allows(call.caller)) throw new KlatchError('not_found');
  const parsed = operation.input.safeParse(call.input ?? {});
  if (!parsed.success) {
    const sentence = parsed.error.issues.map((i) => `${i.path.join('.') || 'input'}: ${i.message}`).join('; ');
    throw new KlatchError('invalid_input', { sentence });
  }
  return operation.run(call.services, parsed.data, call.caller);
}

import type { Log } from '../log.ts';
import { WrongSecretError } from '../storage/sealed.ts';
import type { DeviceTokens } from './device-tokens.ts';
import { failed, refused } from './outcomes.ts';
import type { PushNote, PushOutcome, PushVendor } from './vendor.ts';

/** What a driver may take beyond `push.timeout` before it is not waited for any more. */
export const GRACE_MS = 5_000;

/** What sending works with. */
export interface SendParts {
  readonly tokens: DeviceTokens;
  readonly timeoutMs: number;
  readonly log: Log;
}

/** A device as it is kept. */
export interface SealedTarget {
  readonly tokenSealed: string;
  readonly app: string | null;
}

/** Sends one push. Resolves in time whatever the driver does, and never rejects. */
export function sendPush(
  vendor: PushVendor,
  push: { target: SealedTarget; note: PushNote },
  { tokens, timeoutMs, log }: SendParts,
): Promise<PushOutcome> {
  return new Promise((resolve) => {
    const timer = setTimeout(() => resolve(failed('timeout')), timeoutMs + GRACE_MS);
    const conclude = (outcome: PushOutcome): void => {
      clearTimeout(timer);
      resolve(outcome);
    };
    const explain = (error: unknown): void => conclude(outcomeOf(error, vendor, log));
    try {
      const token = tokens.open(push.target.tokenSealed);
      vendor.send({ token, app: push.target.app }, push.note).then(conclude, explain);
    } catch (error) {
      explain(error);
    }
  });
}

function outcomeOf(error: unknown, { kind }: PushVendor, log: Log): PushOutcome {
  if (error instanceof WrongSecretError) return refused('sealed', null);
  // A defect of the driver. Its message may hold what only the vendor is to know.
  log.error('a push could not be sent', { vendor: kind, name: error instanceof Error ? error.name : 'unknown' });
  return failed('internal');
}

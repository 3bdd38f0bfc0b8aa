import type { Log } from '../log.ts';
import { WrongSecretError } from '../storage/db/sealed.ts';
import type { DeviceTokenCache } from './device-tokens.ts';
import { failed, refused } from './outcomes.ts';
import type { PushNotification, PushOutcome, PushVendor } from './vendors/vendor.ts';

/** What a driver may take beyond `push.timeout` before it is not waited for any more. */
export const SEND_GRACE_MS = 5_000;

/** What sending works with. */
export interface SendDeps {
  readonly tokens: DeviceTokenCache;
  readonly timeoutMs: number;
  readonly log: Log;
}

/** A device as it is kept. */
interface SealedTarget {
  readonly tokenSealed: string;
  readonly app: string | null;
}

/** Sends one push. Resolves in time whatever the driver does, and never rejects. */
export function sendPush(
  vendor: PushVendor,
  push: { target: SealedTarget; notification: PushNotification },
  { tokens, timeoutMs, log }: SendDeps,
): Promise<PushOutcome> {
  return new Promise((resolve) => {
    const timer = setTimeout(() => resolve(failed('timeout')), timeoutMs + SEND_GRACE_MS);
    const conclude = (outcome: PushOutcome): void => {
      clearTimeout(timer);
      resolve(outcome);
    };
    const fail = (error: unknown): void => conclude(toOutcome(error, vendor, log));
    try {
      const token = tokens.open(push.target.tokenSealed);
      vendor.send({ token, app: push.target.app }, push.notification).then(conclude, fail);
    } catch (error) {
      fail(error);
    }
  });
}

function toOutcome(error: unknown, { kind }: PushVendor, log: Log): PushOutcome {
  if (error instanceof WrongSecretError) return refused('sealed', null);
  // A defect of the driver. Its message may hold what only the vendor is to know.
  log.error('a push could not be sent', { vendor: kind, name: error instanceof Error ? error.name : 'unknown' });
  return failed('internal');
}

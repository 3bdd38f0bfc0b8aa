import type { Log } from '../log.ts';
import { WrongSecretError } from '../storage/db/sealed.ts';
import type { DeviceTokenCache } from './device-tokens.ts';
import { failed, refused } from './outcomes.ts';
import type { PushNotification, PushOutcome, PushVendor } from './vendors/vendor.ts';

/** How long a driver may take beyond `push.timeout`. */
export const SEND_GRACE_MS = 5_000;

/** The dependencies of a send. */
export interface SendDeps {
  readonly tokens: DeviceTokenCache;
  readonly timeoutMs: number;
  readonly log: Log;
}

/** A device with its sealed token. */
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
  // A defect of the driver. Its message may hold secrets that only the vendor may see.
  log.error('a push could not be sent', { vendor: kind, name: error instanceof Error ? error.name : 'unknown' });
  return failed('internal');
}

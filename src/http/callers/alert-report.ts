import { alertUpdate } from '../../callers/core/alert-update.ts';
import type { AlertUpdate, KnownAlert } from '../../callers/core/message-form.ts';
import { momentOf } from '../../callers/core/moments.ts';
import type { JsonObject } from '../../callers/core/values.ts';
import { KlatchError } from '../../errors.ts';
import type { AlertPost, MessageContent } from '../../operations/messages/alert-writer.ts';
import { ALERT_UPDATE_MODES, alertTexts, type AlertTextSource, type AlertUpdateMode } from './alert-texts.ts';

/** What a post reports about an alert. */
export interface AlertReport {
  /** The name of the format that the key is of. */
  readonly source: string;
  readonly update: AlertUpdate;
  readonly mode: AlertUpdateMode;
  /** What the post says with what is known of the alert; with `only`, in short about these alerts. */
  readonly contentOf: (known: KnownAlert, only?: ReadonlySet<string>) => MessageContent;
  readonly maxTextCodePoints: number;
}

/** The source of keys that posts without a format have. */
export const OWN_SOURCE = 'klatch';

/** The parameter `updates` of an address. Throws KlatchError for a value that is not known. */
export function alertUpdateModeOf(url: string): AlertUpdateMode {
  const start = url.indexOf('?');
  const value = start === -1 ? null : new URLSearchParams(url.slice(start)).get('updates');
  if (value === null) return 'both';
  const mode = ALERT_UPDATE_MODES.find((each) => each === value);
  if (mode !== undefined) return mode;
  throw new KlatchError('invalid_input', { sentence: 'updates: must be both, edit or new' });
}

/** `key` and `state` beside a text of ours. Null where they do not name an alert: then they are two unknown fields. */
export function ownAlertUpdate({ key, state }: JsonObject): AlertUpdate | null {
  if (typeof key !== 'string' || (state !== 'firing' && state !== 'resolved')) return null;
  return alertUpdate(key, state);
}

/** A post that reports about an alert; `text` is what it says by itself. */
export interface ReportedAlert {
  readonly alertPost: AlertPost;
  readonly text: string;
}

type SentBesides = Pick<AlertPost, 'label' | 'iconUrl' | 'hops' | 'key' | 'bodyHash' | 'expectation'>;

/** `sent` has what the request says besides; `charge` counts the time for which texts are written. */
export function reportedAlert(
  { text, alertReport }: { readonly text: string; readonly alertReport: AlertReport },
  { label, iconUrl, hops, key, bodyHash, expectation }: SentBesides,
  charge: <Result>(work: () => Result) => Result,
): ReportedAlert {
  const { source, update, mode, contentOf, maxTextCodePoints: maxLength } = alertReport;
  const { key: alertKey, state, alerts, onlyAfterFiring = false, isReplacement = false } = update;
  const senderAlerts = alerts.map((alert) => ({ ...alert, startsAt: new Date(momentOf(alert.startsAt)!) }));
  const fingerprints = new Set(alerts.map(({ fingerprint }) => fingerprint));
  const texts: AlertTextSource = { mode, isReplacement, fingerprints, contentOf, maxLength };
  const alertPost: AlertPost = {
    label,
    iconUrl,
    hops,
    key,
    bodyHash,
    ...(expectation === undefined ? {} : { expectation }),
    source,
    alertKey,
    onlyAfterFiring,
    update: { state, senderAlerts, occurredAt: beginningOf(update, new Date()) },
    writeTexts: (change, shown) => charge(() => alertTexts(texts, change, shown)),
  };
  return { alertPost, text };
}

/** A clock that is ahead begins nothing in the future. */
function beginningOf({ since }: AlertUpdate, now: Date): Date {
  const ms = since === undefined ? null : momentOf(since);
  return ms === null || ms > now.getTime() ? now : new Date(ms);
}

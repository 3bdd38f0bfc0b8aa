import { makeAlertUpdate } from '../../callers/core/alert-update.ts';
import type { AlertUpdate, KnownAlert } from '../../callers/core/message-form.ts';
import { momentOf } from '../../callers/core/moments.ts';
import type { JsonObject } from '../../callers/core/values.ts';
import { KlatchError } from '../../errors.ts';
import type { AlertPost, MessageContent } from '../../operations/messages/alert-writer.ts';
import { ALERT_UPDATE_MODES, alertTexts, type AlertTextSource, type AlertUpdateMode } from './alert-texts.ts';

/** A post's report about an alert. */
export interface AlertReport {
  /** The namespace of the alert's key: the name of the post's format, or OWN_SOURCE. */
  readonly source: string;
  readonly update: AlertUpdate;
  readonly mode: AlertUpdateMode;
  /**
   * The post's content for the known state of the alert. With `only`: a short content about the sender's alerts with
   * these fingerprints.
   */
  readonly contentOf: (known: KnownAlert, only?: ReadonlySet<string>) => MessageContent;
  readonly maxTextCodePoints: number;
}

/** `AlertReport.source` of posts in this server's own form. */
export const OWN_SOURCE = 'klatch';

/**
 * The parameter `updates` in the query of a post's address; `both` if the query has none. Throws KlatchError for an
 * unknown value.
 */
export function alertUpdateModeOf(url: string): AlertUpdateMode {
  const queryStart = url.indexOf('?');
  const value = queryStart === -1 ? null : new URLSearchParams(url.slice(queryStart)).get('updates');
  if (value === null) return 'both';
  const mode = ALERT_UPDATE_MODES.find((each) => each === value);
  if (mode !== undefined) return mode;
  throw new KlatchError('invalid_input', { sentence: 'updates: must be both, edit or new' });
}

/**
 * The alert that the fields `key` and `state` of a body in this server's own form name. Null if they are absent or
 * invalid: the post is then an ordinary message.
 */
export function ownAlertUpdate({ key, state }: JsonObject): AlertUpdate | null {
  if (typeof key !== 'string' || (state !== 'firing' && state !== 'resolved')) return null;
  return makeAlertUpdate(key, state);
}

/**
 * A post that reports about an alert. `text` comes from this post alone; answers in the form of other products repeat
 * it.
 */
export interface ReportedAlert {
  readonly alertPost: AlertPost;
  readonly text: string;
}

type OtherMessageParts = Pick<AlertPost, 'label' | 'iconUrl' | 'hops' | 'key' | 'bodyHash' | 'expectation'>;

/**
 * Turns a post's report about an alert into the input of the alert writer. The second parameter holds the message's
 * other parts. `charge` runs the writing of the texts, and charges its time to the sender.
 */
export function reportedAlert(
  { text, alertReport }: { readonly text: string; readonly alertReport: AlertReport },
  { label, iconUrl, hops, key, bodyHash, expectation }: OtherMessageParts,
  charge: <Result>(work: () => Result) => Result,
): ReportedAlert {
  const { source, update, mode, contentOf, maxTextCodePoints: maxLength } = alertReport;
  const { key: alertKey, state, alerts, onlyAfterFiring = false, isReplacement = false } = update;
  const senderAlerts = alerts.map((alert) => ({ ...alert, startsAt: new Date(momentOf(alert.startsAt)!) }));
  const fingerprints = new Set(alerts.map(({ fingerprint }) => fingerprint));
  const textSource: AlertTextSource = { mode, isReplacement, fingerprints, contentOf, maxLength };
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
    update: { state, senderAlerts, fallbackStartedAt: beginningOf(update, new Date()) },
    writeTexts: (change, shown) => charge(() => alertTexts(textSource, change, shown)),
  };
  return { alertPost, text };
}

/**
 * The time at which the alert began; `now` if the post names no valid time, or a future one because the sender's clock
 * is ahead.
 */
function beginningOf({ since }: AlertUpdate, now: Date): Date {
  const ms = since === undefined ? null : momentOf(since);
  return ms === null || ms > now.getTime() ? now : new Date(ms);
}

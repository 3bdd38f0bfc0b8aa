import { MOODS, type KnownAlert } from '../../callers/core/message-form.ts';
import { sinceMomentText } from '../../callers/core/moments.ts';
import { clipped } from '../../callers/core/plain-text.ts';
import { markOf } from '../../callers/core/render-text.ts';
import type { AlertChange, AlertState, SenderAlert } from '../../model/alert.ts';
import type { AlertMessage, AlertTexts } from '../../operations/messages/alert-writer.ts';

/** How a group is told of changes of an alert, besides its first message: by edits, by new messages, or by both. */
export const ALERT_UPDATE_MODES = ['both', 'edit', 'new'] as const;
export type AlertUpdateMode = (typeof ALERT_UPDATE_MODES)[number];

/** What the texts of an alert are made of. */
export interface AlertTextSource {
  readonly mode: AlertUpdateMode;
  /** The key stands for a message that its sender replaces, and nothing fires. */
  readonly isReplacement: boolean;
  /** The fingerprints of the alerts that the post tells; empty: the sender tells none apart. */
  readonly fingerprints: ReadonlySet<string>;
  /** The text of the post with what is known of the alert; with `only`, a short one about these alerts. */
  readonly textOf: (known: KnownAlert, only?: ReadonlySet<string>) => string;
  readonly maxLength: number;
}

const RESOLVED_BEGINNING = `${markOf('good')} resolved · `;
const MARK_BEGINNINGS = MOODS.map((mood) => `${markOf(mood)} `);
const MAX_HEADLINE_LENGTH = 200;

/** The texts that show a change; `shown` is the message that shows the alert until then. */
export function alertTexts(source: AlertTextSource, change: AlertChange, shown: AlertMessage | null): AlertTexts {
  const text = currentText(source, change.after);
  if (shown === null) return { text, followUp: null };
  const reminderOf = (current: string): string | null =>
    shown.isReminderDue ? reminderText(current, change.after.since) : null;
  if (source.mode === 'new') {
    if (isWorthMessage(source, change, text !== shown.text)) return { text, followUp: null, isNewMessage: true };
    return { text: shown.text, followUp: source.isReplacement ? null : reminderOf(shown.text) };
  }
  const edited = editedText(source, change, { text, shownText: shown.text });
  if (source.mode === 'edit' || source.isReplacement) return { text: edited, followUp: null };
  if (hasEnded(change)) return { text: edited, followUp: tellsApart(source) ? headlineOf(text) : text };
  const added = addedFingerprints(change);
  if (added.size > 0)
    return { text: edited, followUp: source.textOf(knownAlert(change.after, source.fingerprints), added) };
  return { text: edited, followUp: reminderOf(edited) };
}

const tellsApart = ({ fingerprints }: AlertTextSource): boolean => fingerprints.size > 0;
const isRepetition = ({ before, after }: AlertChange): boolean => before === after;
const hasEnded = ({ before, after }: AlertChange): boolean => before?.state === 'firing' && after.state === 'resolved';

/** Whether a group that is told in new messages alone gets one. */
function isWorthMessage(source: AlertTextSource, change: AlertChange, isOtherText: boolean): boolean {
  if (isRepetition(change)) return false;
  if (source.isReplacement) return isOtherText;
  return tellsApart(source) || hasEnded(change) || (change.after.state === 'firing' && isOtherText);
}

/** An end that tells less than its beginning did does not take its place: it is a line of its own. */
function editedText(
  source: AlertTextSource,
  change: AlertChange,
  { text, shownText }: { readonly text: string; readonly shownText: string },
): string {
  if (isRepetition(change)) return shownText;
  if (source.isReplacement || tellsApart(source) || change.after.state === 'firing') return text;
  if (!hasEnded(change)) return shownText;
  return resolvedText(source, shownText);
}

/** A sender's own title may say the same of what fires and of what is over. */
function currentText(source: AlertTextSource, after: AlertState): string {
  const text = source.textOf(knownAlert(after, source.fingerprints));
  const isSaid = !tellsApart(source) || after.state === 'firing' || /resolved/i.test(headlineOf(text));
  return isSaid ? text : resolvedText(source, text);
}

function resolvedText({ maxLength }: AlertTextSource, text: string): string {
  return clipped(RESOLVED_BEGINNING + withoutMark(text), maxLength);
}

function withoutMark(text: string): string {
  const beginning = MARK_BEGINNINGS.find((each) => text.startsWith(each)) ?? '';
  return text.slice(beginning.length);
}

function knownAlert({ since, senderAlerts }: AlertState, told: ReadonlySet<string>): KnownAlert {
  const isFiringByFingerprint = new Map<string, boolean>();
  for (const { fingerprint, startsAt, state } of senderAlerts) {
    // Those of an earlier incident are known as well.
    if (state === 'resolved' && startsAt < since && !told.has(fingerprint)) continue;
    const isFiring = state === 'firing' || isFiringByFingerprint.get(fingerprint) === true;
    isFiringByFingerprint.set(fingerprint, isFiring);
  }
  return { since, isFiringByFingerprint };
}

function addedFingerprints({ before, after }: AlertChange): ReadonlySet<string> {
  const firing = (alerts: readonly SenderAlert[]): string[] =>
    alerts.filter(({ state }) => state === 'firing').map(({ fingerprint }) => fingerprint);
  const known = new Set(firing(before?.senderAlerts ?? []));
  return new Set(firing(after.senderAlerts).filter((fingerprint) => !known.has(fingerprint)));
}

function reminderText(text: string, since: Date): string {
  return `${headlineOf(text)} · still firing ${sinceMomentText(since.getTime(), Date.now())}`;
}

function headlineOf(text: string): string {
  const end = text.indexOf('\n');
  return clipped(end === -1 ? text : text.slice(0, end), MAX_HEADLINE_LENGTH, '…');
}

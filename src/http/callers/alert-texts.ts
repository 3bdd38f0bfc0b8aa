import type { KnownAlert } from '../../callers/core/message-form.ts';
import { boundedCardsJson } from '../../callers/core/message-cards.ts';
import { sinceMomentText } from '../../callers/core/moments.ts';
import { clipped } from '../../callers/core/plain-text.ts';
import { emojiOfMood } from '../../callers/core/render-text.ts';
import type { AlertChange, PostedAlertState, SenderAlert } from '../../model/alert.ts';
import { MOODS, type MessageCard } from '../../model/message-card.ts';
import type { AlertMessage, AlertTexts, MessageContent } from '../../operations/messages/alert-writer.ts';

/**
 * The ways in which a group can see changes of an alert after its first message: by edits, by new messages, or by both.
 */
export const ALERT_UPDATE_MODES = ['both', 'edit', 'new'] as const;
export type AlertUpdateMode = (typeof ALERT_UPDATE_MODES)[number];

export interface AlertTextSource {
  readonly mode: AlertUpdateMode;
  /** True: the key names a message that its sender replaces, not an alert that fires. */
  readonly isReplacement: boolean;
  /** The fingerprints of the alerts in the post; empty: the sender does not tell alerts apart. */
  readonly fingerprints: ReadonlySet<string>;
  /**
   * The post's content for the known state of the alert. With `only`: a short content about the sender's alerts with
   * these fingerprints.
   */
  readonly contentOf: (known: KnownAlert, only?: ReadonlySet<string>) => MessageContent;
  readonly maxLength: number;
}

const RESOLVED_BEGINNING = `${emojiOfMood('good')} resolved · `;
const MARK_BEGINNINGS = MOODS.map((mood) => `${emojiOfMood(mood)} `);
const MAX_HEADLINE_LENGTH = 200;

/**
 * The texts that show a change of an alert. `shown` is the message that shows the alert so far; null: there is none.
 */
export function alertTexts(source: AlertTextSource, change: AlertChange, shown: AlertMessage | null): AlertTexts {
  const current = currentContent(source, change.after);
  if (shown === null) return { ...current, followUp: null };
  const reminderOf = (text: string): MessageContent | null =>
    shown.isReminderDue ? oneLineContent(reminderText(text, change.after.since)) : null;
  if (source.mode === 'new') {
    if (isWorthMessage(source, change, current.text !== shown.text))
      return { ...current, followUp: null, isNewMessage: true };
    return { ...shownContent(shown), followUp: source.isReplacement ? null : reminderOf(shown.text) };
  }
  const edited = editedContent(source, change, { current, shown });
  if (source.mode === 'edit' || source.isReplacement) return { ...edited, followUp: null };
  if (hasEnded(change))
    return { ...edited, followUp: tellsAlertsApart(source) ? oneLineContent(headlineOf(current.text)) : current };
  const added = addedFingerprints(change);
  if (added.size > 0)
    return { ...edited, followUp: source.contentOf(knownAlert(change.after, source.fingerprints), added) };
  return { ...edited, followUp: reminderOf(edited.text) };
}

/** The content of a message that is one line of text, without cards. */
const oneLineContent = (text: string): MessageContent => ({ text, cardsJson: null });
const shownContent = ({ text, cards }: AlertMessage): MessageContent => ({ text, cardsJson: boundedCardsJson(cards) });
const tellsAlertsApart = ({ fingerprints }: AlertTextSource): boolean => fingerprints.size > 0;
const isRepetition = ({ before, after }: AlertChange): boolean => before === after;
const hasEnded = ({ before, after }: AlertChange): boolean => before?.state === 'firing' && after.state === 'resolved';

/** Whether a group that sees changes by new messages (`new`) gets a message about this change of an alert. */
function isWorthMessage(source: AlertTextSource, change: AlertChange, isOtherText: boolean): boolean {
  if (isRepetition(change)) return false;
  if (source.isReplacement) return isOtherText;
  return tellsAlertsApart(source) || hasEnded(change) || (change.after.state === 'firing' && isOtherText);
}

/**
 * The shown message's content after a change. A report that the alert has ended, without a list of single alerts, may
 * say less than the shown message. So it only marks that message as resolved.
 */
function editedContent(
  source: AlertTextSource,
  change: AlertChange,
  { current, shown }: { readonly current: MessageContent; readonly shown: AlertMessage },
): MessageContent {
  if (isRepetition(change)) return shownContent(shown);
  if (source.isReplacement || tellsAlertsApart(source) || change.after.state === 'firing') return current;
  return hasEnded(change) ? resolvedContent(source, shown) : shownContent(shown);
}

/**
 * The content that shows the alert in the state `after`. A resolved group of alerts is marked unless its headline says
 * "resolved": a sender's own title may be the same in both states.
 */
function currentContent(source: AlertTextSource, after: PostedAlertState): MessageContent {
  const content = source.contentOf(knownAlert(after, source.fingerprints));
  const needsNoResolvedMark =
    !tellsAlertsApart(source) || after.state === 'firing' || /resolved/i.test(headlineOf(content.text));
  if (needsNoResolvedMark) return content;
  const cards = JSON.parse(content.cardsJson ?? '[]') as readonly MessageCard[];
  return resolvedContent(source, { text: content.text, cards });
}

/** Marks a content as resolved: its text gets the mark, and its cards get the mood `good`. */
function resolvedContent(
  { maxLength }: AlertTextSource,
  { text, cards }: Pick<AlertMessage, 'text' | 'cards'>,
): MessageContent {
  const resolvedCards = cards.map((card): MessageCard => ({ ...card, mood: 'good', color: undefined }));
  return {
    text: clipped(RESOLVED_BEGINNING + withoutMark(text), maxLength),
    cardsJson: boundedCardsJson(resolvedCards),
  };
}

function withoutMark(text: string): string {
  const beginning = MARK_BEGINNINGS.find((each) => text.startsWith(each)) ?? '';
  return text.slice(beginning.length);
}

function knownAlert({ since, senderAlerts }: PostedAlertState, reportedFingerprints: ReadonlySet<string>): KnownAlert {
  const isFiringByFingerprint = new Map<string, boolean>();
  for (const { fingerprint, startsAt, state } of senderAlerts) {
    // Leaves out resolved alerts of an earlier incident, unless this post reports them.
    if (state === 'resolved' && startsAt < since && !reportedFingerprints.has(fingerprint)) continue;
    const isFiring = state === 'firing' || isFiringByFingerprint.get(fingerprint) === true;
    isFiringByFingerprint.set(fingerprint, isFiring);
  }
  return { since, isFiringByFingerprint };
}

function addedFingerprints({ before, after }: AlertChange): ReadonlySet<string> {
  const firingFingerprints = (alerts: readonly SenderAlert[]): string[] =>
    alerts.filter(({ state }) => state === 'firing').map(({ fingerprint }) => fingerprint);
  const firingBefore = new Set(firingFingerprints(before?.senderAlerts ?? []));
  return new Set(firingFingerprints(after.senderAlerts).filter((fingerprint) => !firingBefore.has(fingerprint)));
}

function reminderText(text: string, since: Date): string {
  return `${headlineOf(text)} · still firing ${sinceMomentText(since.getTime(), Date.now())}`;
}

function headlineOf(text: string): string {
  const end = text.indexOf('\n');
  return clipped(end === -1 ? text : text.slice(0, end), MAX_HEADLINE_LENGTH, '…');
}

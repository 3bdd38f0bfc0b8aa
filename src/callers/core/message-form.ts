import type { MOODS } from '../../model/message-card.ts';
import { clipped, storableText } from './plain-text.ts';

/**
 * A program's message in a common structure, into which all formats are read. Text and cards of the posted message are
 * made from it.
 */
export interface MessageForm {
  /** The sender's name that the message shows, as the program sent it. */
  readonly senderLabel: string | null;
  /** The URL of the sender's icon, as the program sent it. The code that stores it checks that it is a URL. */
  readonly iconUrl: string | null;
  /** The text before the cards. */
  readonly text: string;
  readonly cards: readonly Card[];
  /** The text that is used only if `text` and the cards are empty: `fallback` of Slack, `summary` of Teams. */
  readonly fallback: string;
  /** Files that the body contains, in base64. */
  readonly files: readonly EncodedFile[];
  /**
   * True if anybody on the internet may have written parts of the message (comments, titles of issues). Then `@nick` in
   * the message mentions nobody.
   */
  readonly hasStrangersText: boolean;
  /**
   * The alert that the message reports. The server edits the message when the alert's state changes. Null: the message
   * reports none.
   */
  readonly alert: AlertUpdate | null;
  /**
   * Makes the cards again, with what the server knows about the alert from earlier requests. Null: that would not
   * change the cards.
   */
  readonly cardsForKnownAlert: KnownAlertCardsMaker | null;
}

/** `onlyFingerprints`: the fingerprints of the single alerts that a short message shows; absent: all. */
type KnownAlertCardsMaker = (known: KnownAlert, onlyFingerprints?: ReadonlySet<string>) => readonly Card[];

/** What is known about an alert from earlier requests and the present one. */
export interface KnownAlert {
  readonly since: Date;
  /** Whether each single alert is firing, by its fingerprint, including those that the present request leaves out. */
  readonly isFiringByFingerprint: ReadonlyMap<string, boolean>;
}

/** A box with a title, as chats draw it: an attachment of Slack, an embed of Discord, a card of Teams. */
export interface Card {
  readonly title: string;
  readonly url: string;
  readonly mood: Mood | null;
  readonly author: string;
  readonly text: string;
  readonly fields: readonly Field[];
  readonly links: readonly Link[];
  /** The URL of a picture, which the server does not fetch. */
  readonly image: string;
  readonly footer: string;
  /** A time in ISO 8601, in UTC; empty: none. Clients show it with the card; the message's text does not contain it. */
  readonly time: string;
}

/** The severity that the sender gives a card, or the sender's own colour as `#rrggbb`. */
export type Mood = (typeof MOODS)[number] | `#${string}`;

export interface Field {
  readonly name: string;
  readonly value: string;
  /** True if the field may share a line with other short fields. */
  readonly isShort: boolean;
}

export interface Link {
  readonly label: string;
  readonly url: string;
}

export interface EncodedFile {
  readonly name: string;
  readonly base64: string;
}

export interface AlertUpdate {
  /** The key of the alert: unique among the alerts of the same source, 1 to 500 characters. */
  readonly key: string;
  readonly state: 'firing' | 'resolved';
  /** The single alerts that the sender groups under this key; empty: the key stands for one alert. */
  readonly alerts: readonly SingleAlert[];
  /**
   * Only with `resolved`. True: the message is posted only if the alert with this key is firing. So a workflow that
   * also succeeded the last time posts nothing.
   */
  readonly onlyAfterFiring?: boolean;
  /**
   * True: the key names a message that its sender replaces, not an alert. The server only edits that message, and posts
   * no further one.
   */
  readonly isReplacement?: boolean;
  /**
   * The time when the alert began, as the program sent it; absent: the time when the post was received. Only if
   * `alerts` is empty.
   */
  readonly since?: string;
}

export interface SingleAlert {
  readonly fingerprint: string;
  /** The time when the alert started, in ISO 8601, as the program sent it. */
  readonly startsAt: string;
  readonly state: 'firing' | 'resolved';
}

/** The result for a valid request that posts no message: an event of a kind that is not shown. */
export interface IgnoredEvent {
  /** The event's own name, such as "workflow_job". */
  readonly ignored: string;
}

const MAX_EVENT_NAME_LENGTH = 100;

export function ignoredEvent(name: string): IgnoredEvent {
  return { ignored: clipped(storableText(name), MAX_EVENT_NAME_LENGTH, '').trim() || 'unknown' };
}

export const isIgnored = (result: object): result is IgnoredEvent => 'ignored' in result;

/** A message form with these parts; the other parts are empty. */
export function messageForm(parts: Partial<MessageForm>): MessageForm {
  return {
    senderLabel: null,
    iconUrl: null,
    text: '',
    cards: [],
    fallback: '',
    files: [],
    hasStrangersText: false,
    alert: null,
    cardsForKnownAlert: null,
    ...parts,
  };
}

/** A card with these parts; the other parts are empty. */
export function card(parts: Partial<Card>): Card {
  return {
    title: '',
    url: '',
    mood: null,
    author: '',
    text: '',
    fields: [],
    links: [],
    image: '',
    footer: '',
    time: '',
    ...parts,
  };
}

import type { MOODS } from '../../model/message-card.ts';
import { clipped, storableText } from './plain-text.ts';

/**
 * The content of a program's message, in the one form that all formats are read into, before it becomes the text of a
 * message.
 */
export interface MessageForm {
  /** The name that the message is shown under, unchanged. */
  readonly label: string | null;
  /** Unchanged; the code that stores it checks whether it is an address. */
  readonly iconUrl: string | null;
  /** Precedes the cards. */
  readonly text: string;
  readonly cards: readonly Card[];
  /** Used only where neither text nor cards have content: `fallback` of Slack, `summary` of Teams. */
  readonly fallback: string;
  /** Files in the body, encoded in base64. */
  readonly files: readonly EncodedFile[];
  /** Any stranger may have written parts of it (comments, titles of issues). Its `@nick` then mentions nobody. */
  readonly hasStrangersText: boolean;
  /** The subject of the message, so that a later state of the same subject replaces it. */
  readonly alert: AlertUpdate | null;
  /** Makes the cards with what earlier requests reported of the alert, too; null: they would be the same. */
  readonly cardsKnowing: KnownCardsReader | null;
}

/** With `only`: the sender's alerts that a short message shows, by fingerprint. */
type KnownCardsReader = (known: KnownAlert, only?: ReadonlySet<string>) => readonly Card[];

/** The known state of an alert, including this request. */
export interface KnownAlert {
  readonly since: Date;
  /** For each of the sender's alerts, whether it fires, by fingerprint; also for those that this request leaves out. */
  readonly isFiringByFingerprint: ReadonlyMap<string, boolean>;
}

/** A rectangle with a title, as chats draw it: an attachment of Slack, an embed of Discord, a card of Teams. */
export interface Card {
  readonly title: string;
  readonly url: string;
  readonly mood: Mood | null;
  readonly author: string;
  readonly text: string;
  readonly fields: readonly Field[];
  readonly links: readonly Link[];
  /** Address of a picture, which Klatch never fetches. */
  readonly image: string;
  readonly footer: string;
  /** ISO 8601, in UTC; empty: none. Clients show it, the text does not. */
  readonly time: string;
}

/** How a card is meant, or its own colour as `#rrggbb`. */
export type Mood = (typeof MOODS)[number] | `#${string}`;

export interface Field {
  readonly name: string;
  readonly value: string;
  /** A client may show it in one line with neighbours that are short as well. */
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
  /** Unique within the source, 1 to 500 characters. */
  readonly key: string;
  readonly state: 'firing' | 'resolved';
  /** Empty: the key names a single alert. */
  readonly alerts: readonly SingleAlert[];
  /**
   * Only with `resolved`: posts nothing unless the key is known as firing. Most workflows that succeed did so before.
   */
  readonly onlyAfterFiring?: boolean;
  /** The key names a message that its sender replaces, and nothing fires: no other message follows. */
  readonly isReplacement?: boolean;
  /** When the alert began, as sent; absent: when it was received. Only where `alerts` is empty. */
  readonly since?: string;
}

export interface SingleAlert {
  readonly fingerprint: string;
  /** As sent, in ISO 8601. */
  readonly startsAt: string;
  readonly state: 'firing' | 'resolved';
}

/** A request that Klatch understands but does not post: an event of a kind that is not shown. */
export interface Ignored {
  /** The event's own name, such as "workflow_job". */
  readonly ignored: string;
}

const MAX_EVENT_NAME_LENGTH = 100;

export function ignoredEvent(name: string): Ignored {
  return { ignored: clipped(storableText(name), MAX_EVENT_NAME_LENGTH, '').trim() || 'unknown' };
}

export const isIgnored = (result: object): result is Ignored => 'ignored' in result;

/** The form with the parts that a format found; the others are empty. */
export function messageForm(found: Partial<MessageForm>): MessageForm {
  return {
    label: null,
    iconUrl: null,
    text: '',
    cards: [],
    fallback: '',
    files: [],
    hasStrangersText: false,
    alert: null,
    cardsKnowing: null,
    ...found,
  };
}

/** The same for one card. */
export function card(found: Partial<Card>): Card {
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
    ...found,
  };
}

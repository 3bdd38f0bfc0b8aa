import type { MOODS } from '../../model/message-card.ts';
import { clipped, storableText } from './plain-text.ts';

/** A program's message, in the one form that all formats are read into, before it becomes the text of a message. */
export interface MessageForm {
  /** The name that the message is shown under, as it came. */
  readonly label: string | null;
  /** The icon's address as it came; the code that stores it checks whether it is an address. */
  readonly iconUrl: string | null;
  /** Text before the cards. */
  readonly text: string;
  readonly cards: readonly Card[];
  /** Text that is used only if neither `text` nor the cards say anything: `fallback` of Slack, `summary` of Teams. */
  readonly fallback: string;
  /** Files in the body itself, encoded in base64. */
  readonly files: readonly EncodedFile[];
  /**
   * Whether anybody on the internet may have written parts of the message (comments, titles of issues). If so, `@nick`
   * in the message mentions nobody.
   */
  readonly hasStrangersText: boolean;
  /** The alert that the message reports, so that a later state of the same alert replaces the message. */
  readonly alert: AlertUpdate | null;
  /**
   * Makes the cards with the states of the alert that earlier requests reported too; null: such states would not change
   * the cards.
   */
  readonly cardsKnowing: KnownCardsReader | null;
}

/** `only` has the fingerprints of the alerts that a short message shows. */
type KnownCardsReader = (known: KnownAlert, only?: ReadonlySet<string>) => readonly Card[];

/** The known state of an alert, this request included. */
export interface KnownAlert {
  readonly since: Date;
  /** Whether each single alert fires, by fingerprint. Alerts that this request leaves out are included. */
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
  /** Address of a picture; nothing fetches it. */
  readonly image: string;
  readonly footer: string;
  /** A time in ISO 8601, in UTC; empty: none. Clients show the time, the message's text does not. */
  readonly time: string;
}

/** The severity that the sender gives a card, or the sender's own colour as `#rrggbb`. */
export type Mood = (typeof MOODS)[number] | `#${string}`;

export interface Field {
  readonly name: string;
  readonly value: string;
  /** Whether the field may share its line with short neighbours. */
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
  /** Unique among the alerts of the same source; 1 to 500 characters. */
  readonly key: string;
  readonly state: 'firing' | 'resolved';
  /** The single alerts behind the key; empty: the key stands for one alert. */
  readonly alerts: readonly SingleAlert[];
  /**
   * Only with `resolved`: the message is posted only if the alert with this key is firing. Most workflows that succeed
   * did so before.
   */
  readonly onlyAfterFiring?: boolean;
  /**
   * The key names a message that its sender replaces, not an alert that fires: it is edited, and no further message
   * follows.
   */
  readonly isReplacement?: boolean;
  /** When the alert began, as it came; absent: when the post was received. Only where `alerts` is empty. */
  readonly since?: string;
}

export interface SingleAlert {
  readonly fingerprint: string;
  /** The start of the alert as it came, in ISO 8601. */
  readonly startsAt: string;
  readonly state: 'firing' | 'resolved';
}

/** A request that is understood and posts nothing: an event of a kind that is not shown. */
export interface Ignored {
  /** The event's own name, such as "workflow_job". */
  readonly ignored: string;
}

const MAX_EVENT_NAME_LENGTH = 100;

export function ignoredEvent(name: string): Ignored {
  return { ignored: clipped(storableText(name), MAX_EVENT_NAME_LENGTH, '').trim() || 'unknown' };
}

export const isIgnored = (result: object): result is Ignored => 'ignored' in result;

/** A form with the given parts; the others are empty. */
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

/** A card with the given parts; the others are empty. */
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

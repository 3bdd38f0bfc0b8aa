export const MOODS = ['good', 'info', 'warning', 'danger'] as const;

/**
 * A part of a webhook's post, as its message carries it and clients may draw it. Parts that a card does not have are
 * absent, and a card is never empty. Addresses are of the web or of mail. No text contains invisible characters.
 */
export interface MessageCard {
  readonly title?: string | undefined;
  readonly url?: string | undefined;
  /** The sender gives a mood, or its own colour as `#rrggbb` in lower case: never both. */
  readonly mood?: (typeof MOODS)[number] | undefined;
  readonly color?: string | undefined;
  readonly author?: string | undefined;
  readonly text?: string | undefined;
  readonly fields?: readonly CardField[] | undefined;
  readonly links?: readonly CardLink[] | undefined;
  /** Address of a picture, which the server does not fetch. */
  readonly image?: string | undefined;
  readonly footer?: string | undefined;
  /** A time in ISO 8601, in UTC. */
  readonly time?: string | undefined;
}

/** A field has a name, a value, or both. */
export interface CardField {
  readonly name?: string | undefined;
  readonly value?: string | undefined;
  /** The field may share its line with short neighbours. */
  readonly short?: true | undefined;
}

export interface CardLink {
  readonly label?: string | undefined;
  readonly url: string;
}

/** The card with its parts in the order in which documents name them; the database has its own order. */
export function cardWithOrderedKeys(card: MessageCard) {
  const { title, url, mood, color, author, text, fields, links, image, footer, time } = card;
  return {
    title,
    url,
    mood,
    color,
    author,
    text,
    fields: fields?.map(({ name, value, short }) => ({ name, value, short })),
    links: links?.map(({ label, url: address }) => ({ label, url: address })),
    image,
    footer,
    time,
  };
}

export const MOODS = ['good', 'info', 'warning', 'danger'] as const;

/**
 * A part of what a webhook posted, as its message carries it and clients may draw it. What it does not have is not there;
 * it is never empty. Addresses are of the web or of mail, and nothing in it is invisible.
 */
export interface MessageCard {
  readonly title?: string | undefined;
  readonly url?: string | undefined;
  /** Its sender says how it is meant, or gives a colour of its own, `#rrggbb` in lower case: never both. */
  readonly mood?: (typeof MOODS)[number] | undefined;
  readonly color?: string | undefined;
  readonly author?: string | undefined;
  readonly text?: string | undefined;
  readonly fields?: readonly CardField[] | undefined;
  readonly links?: readonly CardLink[] | undefined;
  /** Address of a picture; nothing fetches it. */
  readonly image?: string | undefined;
  readonly footer?: string | undefined;
  /** ISO 8601, in UTC. */
  readonly time?: string | undefined;
}

/** It has a name, a value, or both. */
export interface CardField {
  readonly name?: string | undefined;
  readonly value?: string | undefined;
  /** It may share its line with its neighbours that are short as well. */
  readonly short?: true | undefined;
}

export interface CardLink {
  readonly label?: string | undefined;
  readonly url: string;
}

/** With its parts in the order in which documents name them; the database has one of its own. */
export function orderedCard(card: MessageCard) {
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

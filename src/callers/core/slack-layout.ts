import { card, type Card, type Field, type Link } from './message-form.ts';
import { fieldLines, linkLine, MAX_FIELDS, MAX_LINKS } from './render-text.ts';

/** A part of a message in Slack's blocks. `slot`: the part of a card that it becomes. */
export type LayoutPiece =
  | { readonly slot: 'title' | 'text' | 'image' | 'footer'; readonly text: string }
  | { readonly slot: 'field'; readonly field: Field }
  | { readonly slot: 'link'; readonly link: Link };

/** The slots after a card's text, in the order in which a card shows them. */
const TAIL_SLOTS = ['field', 'link', 'image', 'footer'] as const;
type TailSlot = (typeof TAIL_SLOTS)[number];
const MAX_OF_SLOT: Readonly<Record<TailSlot, number>> = { field: MAX_FIELDS, link: MAX_LINKS, image: 1, footer: 1 };
/** The longest footer of a card. A longer one becomes part of the text, since a card's footer is cut. */
const MAX_FOOTER_LENGTH = 400;

/**
 * Makes one card that keeps the order of the blocks:
 * - Its title is the header at the beginning, if there is one.
 * - Its fields, links, picture and footer are the pieces at the end that are in the order in which a card shows them.
 * - All pieces between them become its text.
 */
export function layoutCard(pieces: readonly LayoutPiece[]): Card {
  const leadingTitle = pieces[0]?.slot === 'title' ? pieces[0].text : '';
  const rest = leadingTitle === '' ? pieces : pieces.slice(1);
  const tailStart = startOfTail(rest);
  const tail = rest.slice(tailStart);
  return card({
    title: leadingTitle,
    text: flattened(rest.slice(0, tailStart)),
    fields: tail.flatMap((piece) => (piece.slot === 'field' ? [piece.field] : [])),
    links: tail.flatMap((piece) => (piece.slot === 'link' ? [piece.link] : [])),
    image: textIn(tail, 'image'),
    footer: textIn(tail, 'footer'),
  });
}

function startOfTail(pieces: readonly LayoutPiece[]): number {
  const counts = { field: 0, link: 0, image: 0, footer: 0 };
  let maxSlotIndex: number = TAIL_SLOTS.length - 1;
  for (let tailStart = pieces.length; tailStart > 0; tailStart--) {
    const piece = pieces[tailStart - 1]!;
    const { slot } = piece;
    if (slot === 'title' || slot === 'text') return tailStart;
    if (slot === 'footer' && piece.text.length > MAX_FOOTER_LENGTH) return tailStart;
    if (TAIL_SLOTS.indexOf(slot) > maxSlotIndex || counts[slot] === MAX_OF_SLOT[slot]) return tailStart;
    maxSlotIndex = TAIL_SLOTS.indexOf(slot);
    counts[slot]++;
  }
  return 0;
}

function textIn(pieces: readonly LayoutPiece[], slot: 'image' | 'footer'): string {
  const found = pieces.find((piece) => piece.slot === slot);
  return found !== undefined && 'text' in found ? found.text : '';
}

/** The pieces as lines of text, each as a card's text would show it. */
function flattened(pieces: readonly LayoutPiece[]): string {
  const lines: string[] = [];
  let fields: Field[] = [];
  const flushFields = (): void => {
    lines.push(...fieldLines(fields));
    fields = [];
  };
  for (const piece of pieces) {
    if (piece.slot !== 'field' || fields.length === MAX_FIELDS) flushFields();
    if (piece.slot === 'field') fields.push(piece.field);
    else lines.push(piece.slot === 'link' ? linkLine(piece.link.label, piece.link.url) : piece.text);
  }
  flushFields();
  return lines.filter((line) => line !== '').join('\n');
}

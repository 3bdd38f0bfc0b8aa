import type { Card } from '../../client/core/shapes.ts';
import { RichText, ExternalLink } from './rich-text.tsx';
import { momentOf } from '../words/dates.ts';

const COLOUR = /^#[0-9a-f]{6}$/i;
const MOODS: ReadonlySet<string> = new Set(['good', 'info', 'warning', 'danger']);

/** A field of a card whose value is longer than this gets a row of its own: a column has room for about this many. */
const MAX_COLUMN_CHARACTERS = 40;
const isWide = (value: string): boolean => value.length > MAX_COLUMN_CHARACTERS || value.includes('\n');

/**
 * A card of a message, shown instead of its text. It loads no pictures from other servers, which would learn who reads
 * the message.
 */
export function MessageCard({ card, ownNick }: { readonly card: Card; readonly ownNick: string }) {
  const { title, url, author, text, fields = [], links = [], footer, time } = card;
  const mood = MOODS.has(card.mood ?? '') ? card.mood : 'none';
  const style = card.color !== undefined && COLOUR.test(card.color) ? { borderInlineStartColor: card.color } : {};
  return (
    <div class={`card mood-${mood}`} style={style}>
      {author === undefined ? null : (
        <p class="quiet" dir="auto">
          {author}
        </p>
      )}
      {title === undefined ? null : (
        <p class="card-title" dir="auto">
          {url === undefined ? title : <ExternalLink url={url}>{title}</ExternalLink>}
        </p>
      )}
      {title === undefined && url !== undefined ? <ExternalLink url={url}>{url}</ExternalLink> : null}
      {text === undefined ? null : <RichText text={text} ownNick={ownNick} />}
      {fields.length === 0 ? null : (
        <dl>
          {fields.map(({ name, value = '' }, index) => (
            <div key={index} class={isWide(value) ? 'wide' : undefined}>
              <dt dir="auto">{name}</dt>
              <dd>
                <RichText text={value} ownNick={ownNick} />
              </dd>
            </div>
          ))}
        </dl>
      )}
      {links.length === 0 ? null : (
        <p class="card-links">
          {links.map(({ label, url }, index) => (
            <ExternalLink key={index} url={url}>
              {label ?? url}
            </ExternalLink>
          ))}
        </p>
      )}
      {footer === undefined && time === undefined ? null : (
        <p class="quiet" dir="auto">
          {[footer, time === undefined ? undefined : momentOf(time)].filter((each) => each !== undefined).join(' · ')}
        </p>
      )}
    </div>
  );
}

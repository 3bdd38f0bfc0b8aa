import type { ComponentChildren, JSX } from 'preact';
import { linkTarget, tokenize, type TextBlock, type TextToken } from '../text/tokenize.ts';
import { words } from '../words/words.ts';
import { PersonLink } from './person-link.tsx';

/** The text of a message, as elements: it is never inserted as HTML. */
export function RichText({ text, ownNick }: { readonly text: string; readonly ownNick: string }) {
  return (
    <div class="text" dir="auto">
      {tokenize(text).map((block, index) => (
        <BlockOf key={index} block={block} ownNick={ownNick} />
      ))}
    </div>
  );
}

/** A block with long lines scrolls, also by keyboard: that needs the tab stop. */
const SCROLLED_BLOCK = { tabIndex: 0, role: 'group', 'aria-label': words.code } as const;

function BlockOf({ block, ownNick }: { readonly block: TextBlock; readonly ownNick: string }) {
  const last = block.tokens.length - 1;
  return (
    <div class={`block ${block.kind}`} dir="auto" {...(block.kind === 'fence' ? SCROLLED_BLOCK : {})}>
      {block.tokens.map((token, index) => (
        // The last line break is dropped, because the block ends there anyway.
        <TokenOf
          key={index}
          token={token}
          text={index === last ? token.text.replace(/\n$/, '') : token.text}
          ownNick={ownNick}
        />
      ))}
    </div>
  );
}

interface TextTokenProps {
  readonly token: TextToken;
  readonly text: string;
  readonly ownNick: string;
}

function TokenOf({ token, text, ownNick }: TextTokenProps) {
  return styled(token, content(token, text, ownNick));
}

function content({ kind }: TextToken, text: string, ownNick: string): ComponentChildren {
  if (kind === 'text') return text;
  if (kind === 'marker') return <span class="marker">{text}</span>;
  if (kind === 'code') return <code>{text}</code>;
  if (kind === 'mention') return <Mention text={text} ownNick={ownNick} />;
  return <ExternalLink url={text}>{text}</ExternalLink>;
}

/** `@` and a nick, as a button that opens the card of the person. If nobody has the nick, the card shows that. */
function Mention({ text, ownNick }: { readonly text: string; readonly ownNick: string }) {
  const nick = text.slice(1).toLowerCase();
  const style = nick === ownNick.toLowerCase() ? 'mention own' : 'mention';
  return (
    <PersonLink class={style} person={{ user: nick, name: text, label: null }}>
      {text}
    </PersonLink>
  );
}

function styled({ strong, emphasis, struck }: TextToken, inner: ComponentChildren): JSX.Element {
  if (strong) return <strong>{styledRest(emphasis, struck, inner)}</strong>;
  return styledRest(emphasis, struck, inner);
}

function styledRest(emphasis: boolean, struck: boolean, inner: ComponentChildren): JSX.Element {
  const shown = struck ? <s>{inner}</s> : inner;
  return emphasis ? <em>{shown}</em> : <>{shown}</>;
}

/**
 * A link with a scheme that a page may open; anything else is text. It opens in a new tab, which gets neither an opener
 * nor a referrer.
 */
export function ExternalLink({ url, children }: { readonly url: string; readonly children: ComponentChildren }) {
  const target = linkTarget(url);
  if (target === null) return <>{children}</>;
  return (
    <a href={target} target="_blank" rel="noopener noreferrer">
      {children}
    </a>
  );
}
